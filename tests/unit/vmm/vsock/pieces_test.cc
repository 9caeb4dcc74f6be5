// SPDX-License-Identifier: Apache-2.0
//
// The small parts: greetings, credits, backlogs, the table of streams, memory.
#include "plugins/vmm/vsock/pieces.h"

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/vmm/vsock/backlog.h"
#include "plugins/vmm/vsock/credit.h"
#include "plugins/vmm/vsock/greeting.h"
#include "plugins/vmm/vsock/guest_memory.h"
#include "plugins/vmm/vsock/resets.h"
#include "plugins/vmm/vsock/stream_table.h"

namespace gantry::vmm::vsock {
namespace {

TEST(VsockGreeting, HasAPort) {
  EXPECT_EQ(ParseGreeting("CONNECT 0"), 0U);
  EXPECT_EQ(ParseGreeting("CoNNect 4294967295"), 4294967295U);
  for (const char* text : {"", "CONNECT", "CONNECT ", "CONNECT 4294967296", "CONNECT 1 ",
                           "CONNECT +1", "CONNECT 99999999999", "CONNECTS 1"}) {
    EXPECT_EQ(ParseGreeting(text), std::nullopt) << text;
  }
}

TEST(VsockGreeting, EndsWhereItCanBeNone) {
  const std::string_view whole = "CONNECT 4294967295";
  for (size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_TRUE(MayBecomeGreeting(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(MayBecomeGreeting("CONNECT 42949672950"));
  EXPECT_FALSE(MayBecomeGreeting("CONNEXT"));
  EXPECT_FALSE(MayBecomeGreeting("CONNECT x"));
}

TEST(VsockCredits, OfTheGuestAreWhatHasNotBeenForwarded) {
  GuestCredit credit(100);
  EXPECT_FALSE(credit.Receive(101));
  EXPECT_TRUE(credit.Receive(100));
  EXPECT_FALSE(credit.Receive(1));
  credit.Forward(49);
  EXPECT_FALSE(credit.MustTell());
  credit.Forward(1);
  EXPECT_TRUE(credit.MustTell());
  credit.Told();
  EXPECT_FALSE(credit.MustTell());
  EXPECT_TRUE(credit.Receive(50));
  EXPECT_FALSE(credit.Receive(1));
}

TEST(VsockCredits, OfTheGuestGoOnBehindTheEndOfNumbers) {
  GuestCredit credit(1U << 31);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(credit.Receive(1U << 31));
    EXPECT_FALSE(credit.Receive(1));
    credit.Forward(1U << 31);
  }
}

TEST(VsockCredits, OfTheHostAreNoneWhereTheGuestLies) {
  HostCredit credit;
  EXPECT_EQ(credit.Free(), 0U);
  credit.Learn(100, 0);
  EXPECT_EQ(credit.Free(), 100U);
  credit.Send(60);
  EXPECT_EQ(credit.Free(), 40U);
  credit.Learn(50, 0);
  EXPECT_EQ(credit.Free(), 0U);
  credit.Learn(100, 61);
  EXPECT_EQ(credit.Free(), 0U);
  credit.Learn(100, 60);
  EXPECT_EQ(credit.Free(), 100U);
}

class VsockBacklog : public testing::Test {
 protected:
  static constexpr size_t kSize = 8192;

  void SetUp() override {
    void* const place =
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(place, MAP_FAILED);
    place_ = {static_cast<std::byte*>(place), kSize};
    backlog_ = Backlog(place_);
  }

  void TearDown() override { munmap(place_.data(), place_.size()); }

  bool Append(std::string text) {
    const size_t half = text.size() / 2;
    const std::array<iovec, 2> pieces{iovec{text.data(), half},
                                      iovec{text.data() + half, text.size() - half}};
    return backlog_.Append(pieces);
  }

  std::string Take(size_t most) {
    std::array<iovec, 2> pieces{};
    const size_t count = backlog_.Front(pieces);
    std::string text;
    for (const iovec& one : Trim(std::span(pieces).first(count), most)) {
      text.append(static_cast<const char*>(one.iov_base), one.iov_len);
    }
    backlog_.Consume(text.size());
    return text;
  }

  std::span<std::byte> place_;
  Backlog backlog_;
};

TEST_F(VsockBacklog, KeepsTheOrderAroundItsEnd) {
  std::string in;
  std::string out;
  for (int i = 0; i < 100; ++i) {
    const std::string text(1999, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(Append(text));
    in += text;
    out += Take(1500);
    out += Take(i > 2 ? 700 : 0);
  }
  out += Take(kSize);
  EXPECT_TRUE(out == in);
  EXPECT_TRUE(backlog_.IsEmpty());
}

TEST_F(VsockBacklog, TakesAllOrNothing) {
  EXPECT_TRUE(Append(std::string(kSize - 1, 'x')));
  EXPECT_FALSE(Append("yz"));
  EXPECT_EQ(backlog_.size(), kSize - 1);
  EXPECT_TRUE(Append("y"));
  EXPECT_FALSE(Append("z"));
}

TEST_F(VsockBacklog, GivesItsPagesBackWhenItIsEmpty) {
  ASSERT_TRUE(Append(std::string(kSize, 'x')));
  Take(kSize);
  // Fresh ones are zeros.
  EXPECT_EQ(place_[0], std::byte{0});
  EXPECT_EQ(place_[kSize - 1], std::byte{0});
}

TEST(VsockTable, FindsStreamsByTheirPorts) {
  StreamTable table;
  ASSERT_TRUE(table.Reserve(kMaxStreams));
  std::vector<Stream*> all;
  for (uint32_t i = 0; i < kMaxStreams; ++i) {
    Stream* const stream = table.Add(StreamState::kOpen);
    ASSERT_NE(stream, nullptr);
    table.Name(*stream, {.guest = i * 7, .host = 1025});
    all.push_back(stream);
  }
  EXPECT_EQ(table.Add(StreamState::kOpen), nullptr);
  for (uint32_t i = 0; i < kMaxStreams; i += 2) {
    table.Remove(*all[i]);
  }
  for (uint32_t i = 0; i < kMaxStreams; ++i) {
    EXPECT_EQ(table.Find({.guest = i * 7, .host = 1025}), i % 2 == 0 ? nullptr : all[i]);
  }
  EXPECT_EQ(table.size(), kMaxStreams / 2);
}

TEST(VsockTable, HasNoStreamsOfEarlierOnes) {
  StreamTable table;
  ASSERT_TRUE(table.Reserve(4));
  Stream* const first = table.Add(StreamState::kOpen);
  const uint32_t generation = first->generation;
  EXPECT_EQ(table.At(0, generation), first);
  table.Remove(*first);
  EXPECT_EQ(table.At(0, generation), nullptr);
  table.Add(StreamState::kOpen);
  EXPECT_EQ(table.At(0, generation), nullptr);
  EXPECT_EQ(table.At(4, generation), nullptr);
}

TEST(VsockTable, GivesTurnsInTheirOrder) {
  StreamTable table;
  ASSERT_TRUE(table.Reserve(8));
  std::vector<Stream*> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(table.Add(StreamState::kOpen));
    table.Queue(*all.back());
    table.Queue(*all.back());
  }
  EXPECT_EQ(table.queued(), 5U);
  // From the middle, the begin and the end.
  table.Remove(*all[2]);
  table.Remove(*all[0]);
  table.Remove(*all[4]);
  EXPECT_EQ(table.queued(), 2U);
  EXPECT_EQ(table.Next(), all[1]);
  table.Queue(*all[1]);
  EXPECT_EQ(table.Next(), all[3]);
  table.QueueFirst(*all[3]);
  EXPECT_EQ(table.Next(), all[3]);
  EXPECT_EQ(table.Next(), all[1]);
  EXPECT_EQ(table.Next(), nullptr);
  table.QueueFirst(*all[3]);
  table.Queue(*all[1]);
  EXPECT_EQ(table.Next(), all[3]);
  EXPECT_EQ(table.Next(), all[1]);
}

TEST(VsockResets, AreBounded) {
  Resets resets;
  for (uint32_t i = 0; i < 3 * Resets::kMost; ++i) {
    resets.Add({.guest = i / 2});
  }
  size_t count = 0;
  for (; !resets.IsEmpty(); resets.Pop()) {
    EXPECT_EQ(resets.front().guest, count);
    ++count;
  }
  EXPECT_EQ(count, Resets::kMost);
}

TEST(VsockMemory, LiesApartAndTogether) {
  constexpr uint64_t kPage = 65536;
  std::vector<UniqueFd> files;
  for (int i = 0; i < 2; ++i) {
    files.push_back(*CreateMemfd("memory"));
    ASSERT_TRUE(Truncate(files.back().get(), 3 * kPage));
  }
  const std::array<MemoryRegion, 2> regions{
      MemoryRegion{.guest_address = kPage,
                   .size = kPage,
                   .front_end_address = 100 * kPage,
                   .file_offset = kPage},
      MemoryRegion{
          .guest_address = 2 * kPage, .size = 2 * kPage, .front_end_address = 200 * kPage}};
  GuestMemory memory;
  ASSERT_TRUE(memory.Map(regions, files));
  // A piece ends where its region does.
  EXPECT_EQ(memory.AtGuest(kPage + 10, 2 * kPage).size(), kPage - 10);
  EXPECT_EQ(memory.AtGuest(2 * kPage, 5).size(), 5U);
  EXPECT_TRUE(memory.AtGuest(kPage - 1, 5).empty());
  EXPECT_TRUE(memory.AtGuest(4 * kPage, 5).empty());
  EXPECT_NE(memory.AtFrontEnd(100 * kPage, kPage), nullptr);
  EXPECT_EQ(memory.AtFrontEnd(100 * kPage, kPage + 1), nullptr);
  EXPECT_EQ(memory.AtFrontEnd(100 * kPage + 1, UINT64_MAX), nullptr);
  EXPECT_EQ(memory.AtFrontEnd(101 * kPage, 0), nullptr);
  // It is the file's own, from its offset on.
  *memory.AtFrontEnd(100 * kPage, 1) = std::byte{7};
  EXPECT_EQ(ReadAt(files[0].get(), kPage, 1).value_or(""), "\x07");
  // What is refused leaves what there was.
  files[1] = *CreateMemfd("short");
  EXPECT_FALSE(memory.Map(regions, files));
  EXPECT_NE(memory.AtFrontEnd(200 * kPage, 2 * kPage), nullptr);
}

}  // namespace
}  // namespace gantry::vmm::vsock
