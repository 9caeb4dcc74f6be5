// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

class AgentExecs : public GuestTest {
 protected:
  void SetUp() override {
    GuestTest::SetUp();
    if (!host_) {
      return;
    }
    made_ = Run({.script = "echo up; sleep 10000"});
    EXPECT_EQ(ReadUntil(made_.out, "up"), "up\n");
  }

  Status Begin(const std::string& exec, const container::Config& config,
               const protocol::Streams& streams = {}) {
    GANTRY_TRY(const auto made,
               host_->client().Call(
                   protocol::CreateExec{.container = made_.id,
                                        .exec = exec,
                                        .process_json = container::Bundle::ProcessOf(config),
                                        .streams = streams},
                   Soon()));
    EXPECT_GT(made.pid, 0);
    GANTRY_TRY(const auto started,
               host_->client().Call(protocol::Start{.container = made_.id, .exec = exec}, Soon()));
    static_cast<void>(started);
    return {};
  }

  Made made_;
};

TEST_F(AgentExecs, RunInTheContainer) {
  protocol::Streams streams;
  streams.output = host_->Token();
  ASSERT_TRUE(Begin("one", {.script = "cat /proc/1/cmdline; exit 9"}, streams));
  EXPECT_THAT(ReadStream(host_->Stream(streams.output)), HasSubstr("10000"));
  EXPECT_EQ(host_->WaitForExit(made_.id, "one"), 9U);
  EXPECT_TRUE(host_->client().Call(protocol::Delete{.container = made_.id, .exec = "one"}, Soon()));
}

// An engine that was killed had asked for it; the next one asks for its removal, and for another.
TEST_F(AgentExecs, AreDeletedWhileTheyAreMade) {
  const protocol::CreateExec wanted{
      .container = made_.id,
      .exec = "one",
      .process_json = container::Bundle::ProcessOf({.script = "sleep 1000"}),
      .streams = {}};
  const protocol::Delete removal{.container = made_.id, .exec = "one"};
  const auto processes = [&] {
    const auto pids = host_->client().Call(protocol::Pids{.container = made_.id}, Soon());
    return pids ? pids->pids.size() : 0;
  };
  const size_t before = processes();
  for (int i = 0; i < 20; ++i) {
    std::promise<void> answered;
    ASSERT_TRUE(host_->client().Post(protocol::Kind::kCreateExec, EncodeProto(wanted),
                                     [&](const Result<std::string>&) { answered.set_value(); }));
    const auto removed = host_->client().Call(removal, Soon());
    EXPECT_TRUE(removed) << removed.error().message;
    answered.get_future().get();
    const auto again = host_->client().Call(wanted, Soon());
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_TRUE(host_->client().Call(removal, Soon()));
  }
  const Deadline deadline = Soon();
  while (processes() != before && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(processes(), before);
}

// K2, K3: containerd closes its end when it likes.
TEST_F(AgentExecs, ReadTheirInputToItsEndAndNothingOfTheirOutputIsLost) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3} << 20}) {
    const std::string exec = Format("cat{}", bytes);
    protocol::Streams streams;
    streams.output = host_->Token();
    streams.input = host_->Token();
    ASSERT_TRUE(Begin(exec, {.script = "cat"}, streams));
    const UniqueFd out = host_->Stream(streams.output);
    const UniqueFd in = host_->Stream(streams.input);
    const std::string sent(bytes, 'x');
    auto writer = std::async(std::launch::async, [&] {
      for (size_t at = 0; at < sent.size(); at += 100'000) {
        WriteStream(in, sent.substr(at, 100'000));
      }
      EndStream(in);
    });
    EXPECT_EQ(ReadStream(out).size(), bytes);
    writer.get();
    EXPECT_EQ(host_->WaitForExit(made_.id, exec), 0U);
  }
}

// U5: one place waits.
TEST_F(AgentExecs, ManyAtOnceEachHaveTheirOwnCode) {
  constexpr int kClients = 8;
  constexpr int kEach = 12;
  std::vector<std::future<void>> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.push_back(std::async(std::launch::async, [this, client] {
      for (int i = 0; i < kEach; ++i) {
        const std::string exec = Format("e{}-{}", client, i);
        const Status begun = Begin(exec, {.script = Format("exit {}", client * kEach + i)});
        EXPECT_TRUE(begun) << begun.error().message;
      }
    }));
  }
  for (auto& client : clients) {
    client.get();
  }
  for (int client = 0; client < kClients; ++client) {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_EQ(host_->WaitForExit(made_.id, Format("e{}-{}", client, i)),
                static_cast<uint32_t>(client * kEach + i));
    }
  }
}

TEST_F(AgentExecs, HaveATerminalThatIsResized) {
  protocol::Streams streams;
  streams.terminal = host_->Token();
  container::Config config{.script = "stty size; read line; stty size; echo got $line"};
  config.process = R"("terminal": true, "consoleSize": {"width": 33, "height": 11})";
  // A devpts is what a terminal needs.
  const std::string id = host_->NewId();
  config.mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                     {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                      "options": ["newinstance", "ptmxmode=0666"]})";
  const auto made =
      host_->client().Call(protocol::CreateContainer{.container = id,
                                                     .bundle = bundle_.path(),
                                                     .spec_json = container::Bundle::TextOf(config),
                                                     .streams = streams},
                           Soon());
  ASSERT_TRUE(made) << made.error().message;
  const UniqueFd terminal = host_->Stream(streams.terminal);
  ASSERT_TRUE(host_->client().Call(protocol::Start{.container = id, .exec = ""}, Soon()));
  EXPECT_EQ(ReadUntil(terminal, "\n"), "11 33\r\n");
  ASSERT_TRUE(host_->client().Call(
      protocol::Resize{.container = id, .exec = "", .width = 80, .height = 24}, Soon()));
  WriteStream(terminal, "word\n");
  EXPECT_THAT(ReadStream(terminal), HasSubstr("24 80\r\ngot word\r\n"));
  EXPECT_EQ(host_->WaitForExit(id), 0U);
}

TEST_F(AgentExecs, AreRefusedWhereNothingRuns) {
  EXPECT_EQ(Begin("..", {.script = "exit"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Begin("one", {.script = "exit", .user = "7"}).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(Begin("one", {.script = "sleep 1000"}));
  EXPECT_EQ(Begin("one", {.script = "exit"}).error().code, Code::kAlreadyExists);
  ASSERT_TRUE(host_->client().Call(
      protocol::Signal{.container = made_.id, .exec = "", .signal = SIGKILL}, Soon()));
  host_->WaitForExit(made_.id);
  EXPECT_EQ(host_->WaitForExit(made_.id, "one"), 128U + SIGKILL) << "it ends with the init";
  EXPECT_EQ(Begin("two", {.script = "exit"}).error().code, Code::kFailedPrecondition);
}

TEST_F(AgentExecs, ThatRunAreKilledByTheirDelete) {
  ASSERT_TRUE(Begin("one", {.script = "sleep 1000"}));
  ASSERT_TRUE(host_->client().Call(protocol::Delete{.container = made_.id, .exec = "one"}, Soon()));
  EXPECT_TRUE(host_->HasExited(made_.id, "one"));
}

}  // namespace
}  // namespace gantry::vmm
