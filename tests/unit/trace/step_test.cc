// SPDX-License-Identifier: Apache-2.0
#include "core/trace/step.h"

#include <gtest/gtest.h>

namespace gantry::trace {
namespace {

constexpr Subject kOfAnExec{"k8s.io", "c1", "e1"};

std::string Slot(std::string begin, const std::string& end) {
  begin += end;
  begin.resize(kSlotBytes);
  return begin;
}

TEST(Step, IsReadAsItWasWritten) {
  const std::string begin =
      EncodeBegin(7, 1'000'000'001, Kind::kBackend, true, kOfAnExec, "create");
  const std::string end =
      EncodeEnd(7, begin.size(), {5'000'000, 2'000'000, Code::kNotFound, "no such file"});

  const auto step = DecodeSlot(Slot(begin, end));

  ASSERT_TRUE(step);
  EXPECT_EQ(step->number, 7U);
  EXPECT_EQ(step->begun_ns, 1'000'000'001);
  EXPECT_EQ(step->kind, Kind::kBackend);
  EXPECT_TRUE(step->again);
  EXPECT_EQ(step->ns, "k8s.io");
  EXPECT_EQ(step->id, "c1");
  EXPECT_EQ(step->exec, "e1");
  EXPECT_EQ(step->what, "create");
  ASSERT_TRUE(step->end);
  EXPECT_EQ(step->end->took_ns, 5'000'000);
  EXPECT_EQ(step->end->waited_ns, 2'000'000);
  EXPECT_EQ(step->end->code, Code::kNotFound);
  EXPECT_EQ(step->end->detail, "no such file");
}

TEST(Step, HasNoEndThatIsAnOlderOnes) {
  const std::string begin = EncodeBegin(8, 1, Kind::kCall, false, kOfAnExec, "Start");
  const std::string old = EncodeEnd(7, begin.size(), {1, 0, Code::kOk, ""});

  const auto step = DecodeSlot(Slot(begin, old));

  ASSERT_TRUE(step);
  EXPECT_FALSE(step->end);
}

TEST(Step, IsNotThereWhereAnyByteOfItIsTorn) {
  const std::string begin = EncodeBegin(8, 1, Kind::kCall, false, kOfAnExec, "Start");
  const std::string whole = Slot(begin, "");
  ASSERT_TRUE(DecodeSlot(whole));
  for (size_t i = 0; i < begin.size(); ++i) {
    std::string torn = whole;
    torn[i] = static_cast<char>(torn[i] ^ 0x55);
    EXPECT_FALSE(DecodeSlot(torn)) << "byte " << i;
    EXPECT_FALSE(DecodeSlot(whole.substr(0, i))) << "cut after " << i;
  }
}

TEST(Step, KeepsItsBeginWhereItsEndIsTorn) {
  const std::string begin = EncodeBegin(8, 1, Kind::kCall, false, kOfAnExec, "Start");
  const std::string end = EncodeEnd(8, begin.size(), {1, 0, Code::kInternal, "why"});
  for (size_t i = 0; i < end.size(); ++i) {
    std::string torn = Slot(begin, end);
    torn[begin.size() + i] = static_cast<char>(torn[begin.size() + i] ^ 0x55);
    const auto step = DecodeSlot(torn);
    ASSERT_TRUE(step);
    EXPECT_FALSE(step->end) << "byte " << i;
  }
}

TEST(Step, IsCutToItsSlot) {
  const std::string longest(1000, 'x');
  const std::string begin =
      EncodeBegin(9, 1, Kind::kCall, false, {longest, longest, longest}, longest);
  const std::string end = EncodeEnd(9, begin.size(), {1, 0, Code::kInternal, longest});
  ASSERT_LE(begin.size() + end.size(), kSlotBytes);

  const auto step = DecodeSlot(Slot(begin, end));

  ASSERT_TRUE(step && step->end);
  EXPECT_EQ(step->ns, longest.substr(0, kMaxNs));
  EXPECT_EQ(step->id, longest.substr(0, kMaxId));
  EXPECT_EQ(step->exec, longest.substr(0, kMaxExec));
  EXPECT_EQ(step->what, longest.substr(0, kMaxWhat));
  EXPECT_FALSE(step->end->detail.empty());
}

TEST(Step, HasAKindWithAName) {
  EXPECT_EQ(KindName(Kind::kKeeper), "keeper");
  EXPECT_EQ(KindName(static_cast<Kind>(200)), "?");
}

}  // namespace
}  // namespace gantry::trace
