// SPDX-License-Identifier: Apache-2.0
//
// What a guest may say that somebody has taken over, and what the host makes of it.
#include <cstdint>
#include <future>
#include <limits>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/agent/client.h"
#include "tests/unit/vmm/agent/guest_end.h"

namespace gantry::vmm {
namespace {

using protocol::Envelope;
using protocol::Framed;
using protocol::Kind;
using testing::HasSubstr;

struct Lie {
  const char* name;
  /// With one call under way, whose number is 1 and whose kind is List.
  std::string bytes;
  /// Why the connection is given up.
  const char* why;
};

void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::string FrameOf(uint64_t call, Kind kind, const std::string& body = {}) {
  return Framed(EncodeProto(
      Envelope{.call = call, .kind = static_cast<uint32_t>(kind), .body = body, .failure = {}}));
}

std::string Flood() {
  std::string all;
  for (int i = 0; i < 1100; ++i) {
    all += FrameOf(0, static_cast<Kind>(5000 + i));
  }
  return all;
}

const Lie kLies[] = {
    {"AnswerToNoCall", FrameOf(9, Kind::kList), "an answer to call 9, which nobody has made"},
    {"AnswerToTheLargestCall", FrameOf(std::numeric_limits<uint64_t>::max(), Kind::kList),
     "which nobody has made"},
    {"AnswerToAnotherQuestion", FrameOf(1, Kind::kStats), "or one to another question"},
    {"FrameWithoutEnd", std::string("\xff\xff\xff\xff", 4), "it has 4294967295 bytes, at most"},
    {"FrameAByteTooLong", std::string("\x00\x10\x00\x01", 4), "it has 1048577 bytes, at most"},
    {"EmptyFrame", std::string(4, '\0'), "it is empty"},
    {"Garbage", Framed("\xff\xff\xff\xff\xff"), "decode a message: field"},
    {"Group", Framed("\x0b"), "decode a message: field"},
    {"FloodOfNoEvents", Flood(), "more than 1000 events that are none"},
};

class HostileGuest : public testing::TestWithParam<Lie> {};

TEST_P(HostileGuest, EndsItsOwnConnectionAndTheCallsOnIt) {
  GuestEnd guest;
  auto call =
      std::async(std::launch::async, [&] { return guest.client().Call(protocol::List{}, Soon()); });
  ASSERT_TRUE(guest.Hear());
  guest.Say(GetParam().bytes);
  EXPECT_THAT(guest.WaitForGone(), HasSubstr(GetParam().why));
  const auto answer = call.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("ask the guest agent of 'pod-7' for List"));
}

INSTANTIATE_TEST_SUITE_P(Lies, HostileGuest, testing::ValuesIn(kLies),
                         [](const auto& lie) { return std::string(lie.param.name); });

TEST(HostileEvents, AreDroppedOrMadeHarmless) {
  GuestEnd guest;
  const auto exited = [&](const protocol::Exited& told) {
    guest.SayFrame(EventOf(Kind::kExited, EncodeProto(told)));
  };
  exited({"../../etc", "", 0, 0});
  exited({"", "", 0, 0});
  exited({"c", "a\nb", 0, 0});
  guest.SayFrame(EventOf(Kind::kExited, "\xff"));
  guest.SayFrame(EventOf(Kind::kOutOfMemory, EncodeProto(protocol::OutOfMemory{"c/d", 1})));
  exited({"c", "", 70000, std::numeric_limits<int64_t>::max()});
  exited({"c", "", 256, std::numeric_limits<int64_t>::min()});
  const auto exits = guest.WaitForExits(2);
  ASSERT_EQ(exits.size(), 2U);
  EXPECT_EQ(exits[0].exit.status, 255U) << "no status is above that, and none becomes 0";
  EXPECT_EQ(exits[1].exit.status, 255U);
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  for (const AgentExit& exit : exits) {
    EXPECT_LE(exit.exit.exited_at_ns, now) << "a clock that is ahead";
    EXPECT_GT(exit.exit.exited_at_ns, now - int64_t{3600} * 1'000'000'000) << "one that is behind";
  }
  EXPECT_TRUE(guest.memory().empty());
}

TEST(HostileEvents, FloodNoLog) {
  GuestEnd guest;
  std::string lines;
  for (int i = 0; i < 900; ++i) {
    lines += Framed(EncodeProto(EventOf(Kind::kLog, EncodeProto(protocol::LogLine{"line", 0}))));
  }
  guest.Say(lines);
  guest.SayFrame(EventOf(Kind::kExited, EncodeProto(protocol::Exited{"c", "", 0, 0})));
  guest.WaitForExits(1);
  EXPECT_LE(guest.lines().size(), 2 * LineLimit::kAtOnce);
}

TEST(LineLimit, LetsThroughSoManyAtOnceAndThenInTime) {
  LineLimit limit;
  for (uint32_t i = 0; i < LineLimit::kAtOnce; ++i) {
    EXPECT_TRUE(limit.Take(1000)) << i;
  }
  EXPECT_FALSE(limit.Take(1000));
  EXPECT_TRUE(limit.Take(1000 + LineLimit::kEachNs));
  EXPECT_FALSE(limit.Take(1000 + LineLimit::kEachNs));
}

}  // namespace
}  // namespace gantry::vmm
