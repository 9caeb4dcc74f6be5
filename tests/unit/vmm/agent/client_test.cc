// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/client.h"

#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/agent/guest_end.h"

namespace gantry::vmm {
namespace {

using protocol::Kind;
using testing::HasSubstr;

TEST(AgentClient, GivesEachCallItsOwnAnswerInWhateverOrder) {
  GuestEnd guest;
  std::vector<std::future<Result<protocol::CreateAnswer>>> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(std::async(std::launch::async, [&guest, i] {
      return guest.client().Call(
          protocol::CreateContainer{
              .container = "c" + std::to_string(i), .bundle = {}, .spec_json = {}, .streams = {}},
          Soon());
    }));
  }
  std::vector<protocol::Envelope> asked;
  for (int i = 0; i < 20; ++i) {
    asked.push_back(*guest.Hear());
  }
  for (auto one = asked.rbegin(); one != asked.rend(); ++one) {
    const auto request = DecodeProto<protocol::CreateContainer>(one->body);
    protocol::CreateAnswer answer;
    answer.pid = std::stoi(request->container.substr(1)) + 100;
    guest.SayFrame(
        {.call = one->call, .kind = one->kind, .body = EncodeProto(answer), .failure = {}});
  }
  for (int i = 0; i < 20; ++i) {
    const auto answer = answers.at(static_cast<size_t>(i)).get();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->pid, i + 100);
  }
}

TEST(AgentClient, TellsTheAnswerToWhatWasPostedOnceOrThatThereIsNone) {
  GuestEnd guest;
  std::promise<std::string> answered;
  std::promise<Code> lost;
  ASSERT_TRUE(guest.client().Post(Kind::kList, "", [&](const Result<std::string>& answer) {
    answered.set_value(answer.value_or("none"));
  }));
  guest.Answer("body");
  EXPECT_EQ(answered.get_future().get(), "body");
  ASSERT_TRUE(guest.client().Post(Kind::kList, "", [&](const Result<std::string>& answer) {
    lost.set_value(answer ? Code::kUnknown : answer.error().code);
  }));
  guest.Hangup();
  EXPECT_EQ(lost.get_future().get(), Code::kUnavailable);
  EXPECT_EQ(guest.client().Post(Kind::kList, "", nullptr).error().code, Code::kUnavailable);
}

TEST(AgentClient, NamesTheSandboxTheCallAndTheAgentsOwnError) {
  GuestEnd guest;
  auto call = std::async(std::launch::async, [&] {
    return guest.client().Call(protocol::Start{.container = "c", .exec = ""}, Soon());
  });
  const auto asked = guest.Hear();
  guest.SayFrame({.call = asked->call,
                  .kind = asked->kind,
                  .body = {},
                  .failure = protocol::Failure{5, 2, "no such program"}});
  const auto answer = call.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kNotFound);
  EXPECT_EQ(answer.error().sys_errno, 2);
  EXPECT_EQ(answer.error().message, "ask the guest agent of 'pod-7' for Start: no such program");
}

TEST(AgentClient, EndsACallThatNobodyAnswersByItsDeadlineAndGoesOn) {
  GuestEnd guest;
  const auto late = guest.client().Call(protocol::List{}, In(std::chrono::milliseconds(1)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(late.error().message,
            "ask the guest agent of 'pod-7' for List: it has not answered in time");
  // The answer comes when nobody waits for it any more.
  guest.Answer("");
  auto next =
      std::async(std::launch::async, [&] { return guest.client().Call(protocol::List{}, Soon()); });
  guest.Answer("");
  EXPECT_TRUE(next.get());
}

TEST(AgentClient, EndsAllCallsWhenTheGuestIsGone) {
  GuestEnd guest;
  auto call =
      std::async(std::launch::async, [&] { return guest.client().Call(protocol::List{}, Soon()); });
  ASSERT_TRUE(guest.Hear());
  guest.Hangup();
  EXPECT_EQ(call.get().error().code, Code::kUnavailable);
  EXPECT_EQ(guest.WaitForGone(), "its connection is closed");
  EXPECT_EQ(guest.client().Call(protocol::List{}, Soon()).error().code, Code::kUnavailable);
}

TEST(AgentClient, RefusesARequestThatIsTooLong) {
  GuestEnd guest;
  const auto answer = guest.client().Call(
      protocol::CreateContainer{.container = "c",
                                .bundle = "",
                                .spec_json = std::string(protocol::kMaxFromHost, 'x'),
                                .streams = {}},
      Soon());
  EXPECT_EQ(answer.error().code, Code::kInvalidArgument);
}

// What was begun and not finished would be taken for the beginning of the next.
TEST(AgentClient, GivesUpAGuestThatStopsReadingInTheMiddleOfACall) {
  GuestEnd guest;
  const auto answer =
      guest.client().Call(protocol::CreateContainer{.container = "c",
                                                    .bundle = "",
                                                    .spec_json = std::string(size_t{3} << 20, 'x'),
                                                    .streams = {}},
                          In(std::chrono::milliseconds(50)));
  EXPECT_EQ(answer.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(guest.WaitForGone(), HasSubstr("stopped reading in the middle of a call"));
}

TEST(AgentClient, TellsEnds) {
  GuestEnd guest;
  guest.SayFrame(EventOf(Kind::kOutOfMemory, EncodeProto(protocol::OutOfMemory{"c", 2})));
  guest.SayFrame(EventOf(Kind::kLog, EncodeProto(protocol::LogLine{"a\x1b[31m line", 3})));
  guest.SayFrame(EventOf(Kind::kExited, EncodeProto(protocol::Exited{"c", "e", 7, 0})));
  const auto exits = guest.WaitForExits(1);
  EXPECT_EQ(exits[0].container, "c");
  EXPECT_EQ(exits[0].exec, "e");
  EXPECT_EQ(exits[0].exit.status, 7U);
  EXPECT_THAT(guest.memory(), testing::ElementsAre(testing::Pair("c", 2U)));
  EXPECT_THAT(guest.lines(), testing::ElementsAre("a?[31m line (3 lines before it are lost)"));
}

}  // namespace
}  // namespace gantry::vmm
