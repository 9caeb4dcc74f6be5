// SPDX-License-Identifier: Apache-2.0
//
// What a guest may say that somebody has taken over, and what the host makes of it.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <future>
#include <limits>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

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

// Of each kind, those that are no events and those of later versions too.
TEST(HostileFrames, OfEveryKindAndSizeAreNoEventAndNoAnswer) {
  constexpr uint32_t kKinds = 128;
  for (const size_t size : {size_t{1}, size_t{2}, size_t{127}, size_t{128}, size_t{65535},
                            size_t{65536}, size_t{200'000}}) {
    GuestEnd guest;
    auto call = std::async(std::launch::async,
                           [&] { return guest.client().Call(protocol::List{}, Soon()); });
    const auto asked = guest.Hear();
    ASSERT_TRUE(asked);
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      ASSERT_TRUE(guest.Say(FrameOf(0, static_cast<Kind>(kind), std::string(size, '\xff'))));
    }
    ASSERT_TRUE(guest.SayFrame(
        {.call = asked->call, .kind = asked->kind, .body = EncodeProto(protocol::ListAnswer{})}));
    const auto answer = call.get();
    EXPECT_TRUE(answer) << "with " << size << " bytes: " << answer.error().message;
    EXPECT_TRUE(guest.WaitForExits(0).empty());
    EXPECT_TRUE(guest.memory().empty());
    EXPECT_TRUE(guest.lines().empty());
  }
}

// As long as a frame may be, and in the smallest parts that there are.
TEST(HostileFrames, OfTheGreatestSizeAndInPartsAreTaken) {
  GuestEnd guest;
  auto call =
      std::async(std::launch::async, [&] { return guest.client().Ask(Kind::kList, "", Soon()); });
  const auto asked = guest.Hear();
  ASSERT_TRUE(asked);
  Envelope answer{.call = asked->call, .kind = asked->kind, .body = "", .failure = {}};
  const size_t around = EncodeProto(answer).size() + 4;
  answer.body.assign(protocol::kMaxFromGuest - around, 'x');
  const std::string frame = Framed(EncodeProto(answer));
  ASSERT_EQ(frame.size(), protocol::kHeaderBytes + protocol::kMaxFromGuest);
  for (size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(guest.Say(frame.substr(i, 1)));
  }
  ASSERT_TRUE(guest.Say(frame.substr(100)));
  const auto got = call.get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->size(), answer.body.size());
}

// A call whose answer stops in its middle ends by its deadline; what comes of it later is nobody's.
TEST(HostileFrames, ThatStopInTheMiddleHoldUpNoCallBeyondItsTime) {
  const std::string body = EncodeProto(protocol::ListAnswer{.containers = {{.container = "c"}}});
  const size_t size = FrameOf(1, Kind::kList, body).size();
  for (size_t cut = 1; cut < size; ++cut) {
    GuestEnd guest;
    const std::string frame = FrameOf(1, Kind::kList, body);
    auto call = std::async(std::launch::async, [&] {
      return guest.client().Call(protocol::List{}, In(std::chrono::milliseconds(2)));
    });
    const auto asked = guest.Hear();
    ASSERT_TRUE(asked);
    ASSERT_EQ(asked->call, 1U);
    ASSERT_TRUE(guest.Say(frame.substr(0, cut)));
    EXPECT_EQ(call.get().error().code, Code::kDeadlineExceeded);
    ASSERT_TRUE(guest.Say(frame.substr(cut)));
    auto next = std::async(std::launch::async,
                           [&] { return guest.client().Call(protocol::List{}, Soon()); });
    guest.Answer(body);
    const auto answer = next.get();
    ASSERT_TRUE(answer) << "cut at " << cut << ": " << answer.error().message;
    EXPECT_EQ(answer->containers.size(), 1U);
  }
}

// No guest has any to send; a VMM that was taken over may try.
TEST(HostileFrames, DescriptorsThatComeWithThemAreClosed) {
  GuestEnd guest;
  auto pipe = MakeBlockingPipe();
  ASSERT_TRUE(pipe);
  const std::string frame = FrameOf(0, Kind::kExited, EncodeProto(protocol::Exited{"c", "", 3, 0}));
  const std::array<int, 1> fds = {pipe->second.get()};
  ASSERT_TRUE(SendWithFds(guest.end().get(), frame, fds));
  pipe->second.reset();
  EXPECT_EQ(guest.WaitForExits(1).at(0).exit.status, 3U) << "they change nothing";
  char byte = 0;
  EXPECT_EQ(::read(pipe->first.get(), &byte, 1), 0) << "nobody has it any more";
}

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

// Well-formed ends without end: each is given on, none is kept, and the calls beside them end.
TEST(HostileEvents, FloodWithEndsAndACallIsAnsweredAmongThem) {
  constexpr size_t kEnds = 20'000;
  GuestEnd guest;
  auto call =
      std::async(std::launch::async, [&] { return guest.client().Call(protocol::List{}, Soon()); });
  const auto asked = guest.Hear();
  ASSERT_TRUE(asked);
  const std::string ended =
      FrameOf(0, Kind::kExited, EncodeProto(protocol::Exited{"none", "of-its", 0, 0}));
  for (size_t i = 0; i < kEnds; ++i) {
    ASSERT_TRUE(guest.Say(ended));
    if (i == kEnds / 2) {
      ASSERT_TRUE(guest.SayFrame({.call = asked->call, .kind = asked->kind}));
    }
  }
  EXPECT_TRUE(call.get());
  EXPECT_EQ(guest.WaitForExits(kEnds).size(), kEnds);
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
