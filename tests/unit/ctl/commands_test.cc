// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/commands.h"

#include <sys/epoll.h>

#include <array>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/link/channel.h"
#include "core/link/control_messages.h"
#include "core/os/fs.h"
#include "core/os/poll.h"
#include "core/os/splice.h"
#include "core/rpc/ttrpc.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome OutcomeOf(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCommand(words, out, err);
  return {code, out.str(), err.str()};
}

// Answers one call on a socket of its own, with what the test says.
class FakeEngine {
 public:
  explicit FakeEngine(Result<std::string> answer) : answer_(std::move(answer)) {
    dir_ = std::move(*os::TempDir::Create());
    listener_ = std::move(*ListenUnix(address()));
    thread_ = std::thread([this] { Serve(); });
  }

  ~FakeEngine() { Join(); }

  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  std::string address() const { return dir_.path() + "/s"; }

  /// What was asked; waits for it.
  const rpc::Request& request() {
    Join();
    return request_;
  }

 private:
  static constexpr auto kLimit = std::chrono::seconds(10);

  void Join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void Serve() {
    IgnoreError(os::Poll(listener_.get(), EPOLLIN, kLimit), "the accept below tells");
    auto socket = AcceptUnix(listener_.get());
    if (!socket || !*socket) {
      return;
    }
    rpc::FrameSplitter frames;
    for (;;) {
      if (const auto frame = frames.Next()) {
        request_ = *rpc::DecodeRequest(frame->data);
        const auto bytes = rpc::EncodeFrame(frame->header.stream, rpc::FrameType::kResponse, 0,
                                            rpc::EncodeResponse(answer_));
        IgnoreError(SendWithFds((*socket)->get(), *bytes, {}), "the caller sees it");
        return;
      }
      std::array<char, 4096> buffer;
      const auto ready = os::Poll((*socket)->get(), EPOLLIN, kLimit);
      const auto got = os::ReadSome((*socket)->get(), buffer);
      if (!ready || *ready == 0 || !got || got->end) {
        return;
      }
      frames.Feed({buffer.data(), got->bytes});
    }
  }

  Result<std::string> answer_;
  os::TempDir dir_;
  UniqueFd listener_;
  rpc::Request request_;
  std::thread thread_;
};

TEST(Commands, ShowTheirHelpAndVersion) {
  EXPECT_EQ(OutcomeOf({"--help"}).code, 0);
  EXPECT_THAT(OutcomeOf({"--help"}).out, HasSubstr("usage: gantryctl COMMAND"));
  EXPECT_THAT(OutcomeOf({"--version"}).out, HasSubstr("gantryctl "));
}

TEST(Commands, RefuseWrongCommandLines) {
  for (const std::vector<std::string>& words :
       std::initializer_list<std::vector<std::string>>{{},
                                                       {"nothing"},
                                                       {"inspect"},
                                                       {"inspect", "a", "b"},
                                                       {"ps", "x"},
                                                       {"ps", "--loud"},
                                                       {"ps", "--address"}}) {
    const Outcome outcome = OutcomeOf(words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
}

TEST(Commands, SayWhenNobodyIsThere) {
  const Outcome outcome = OutcomeOf({"ps", "--address", "/nonexistent/s"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("gantryctl: reach gantry at '/nonexistent/s'"));
  const Outcome grpc = OutcomeOf({"ps", "--address", "unix:///nonexistent/s"});
  EXPECT_EQ(grpc.code, 1);
  EXPECT_THAT(grpc.err, HasSubstr("grpc.address"));
}

TEST(Commands, RefuseAddressesAndTimesThatAreNone) {
  EXPECT_THAT(OutcomeOf({"ps", "--address", "tcp://1.2.3.4:5"}).err, HasSubstr("unix://PATH"));
  EXPECT_THAT(OutcomeOf({"events", "--since", "yesterday"}).err, HasSubstr("--since 'yesterday'"));
  EXPECT_THAT(OutcomeOf({"top", "--interval", "0"}).err, HasSubstr("--interval"));
}

TEST(CommandCheck, MissesAFileThatTheEngineWouldDoWithout) {
  const Outcome outcome = OutcomeOf({"check", "/nonexistent/g.yaml"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("'/nonexistent/g.yaml': no such file"));
}

TEST(CommandCheck, SaysWhereAConfigurationIsWrong) {
  const auto dir = os::TempDir::Create();
  const std::string config = dir->path() + "/g.yaml";
  ASSERT_TRUE(ReplaceFile(config, "log:\n  colour: red\n", 0600).has_value());
  const Outcome outcome = OutcomeOf({"check", config});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("g.yaml:2:3': log.colour: unknown key"));
}

TEST(CommandPs, ListsWhatTheEngineSays) {
  v1::ListResponse list;
  list.add_instances()->set_id("c1");
  FakeEngine engine(list.SerializeAsString());
  const Outcome outcome = OutcomeOf({"ps", "-n", "k8s.io", "--address", engine.address()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("c1"));
  EXPECT_EQ(engine.request().service, "gantry.v1.Operator");
  EXPECT_EQ(engine.request().method, "List");
  v1::ListRequest request;
  ASSERT_TRUE(request.ParseFromString(engine.request().payload));
  EXPECT_EQ(request.namespace_(), "k8s.io");
}

TEST(CommandInspect, ShowsTheEnginesError) {
  FakeEngine engine(Fail(Code::kNotFound, "inspect 'x': no such container"));
  const Outcome outcome = OutcomeOf({"inspect", "x", "--address", engine.address()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "gantryctl: inspect 'x': no such container\n");
}

TEST(CommandStatus, RefusesARunDirectoryOfSomebodyElse) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root gives directories away";
  }
  const auto dir = os::TempDir::Create();
  ASSERT_EQ(chown(dir->path().c_str(), 12345, 0), 0);
  const UniqueFd listener = *ListenUnix(dir->path() + "/gantry.sock");
  const Outcome outcome = OutcomeOf({"status", "--address", dir->path() + "/gantry.sock"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("owned by uid 12345"));
}

TEST(CommandStatus, RefusesGarbage) {
  FakeEngine engine(std::string("\xff\xff\xff"));
  const Outcome outcome = OutcomeOf({"status", "--json", "--address", engine.address()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("malformed"));
}

// A keeper beside the address, which answers one question.
Outcome RestartWith(const auto& answer) {
  const auto dir = os::TempDir::Create();
  const UniqueFd listener = *ListenUnix(dir->path() + "/keeper.sock");
  link::Type asked{};
  std::thread keeper([&] {
    constexpr auto kLimit = std::chrono::seconds(10);
    IgnoreError(os::Poll(listener.get(), EPOLLIN, kLimit), "the accept below tells");
    auto socket = AcceptUnix(listener.get());
    if (!socket || !*socket) {
      return;
    }
    link::BlockingChannel channel(std::move(**socket));
    const auto until = std::chrono::steady_clock::now() + kLimit;
    if (const auto question = channel.Receive(until)) {
      asked = question->type;
      IgnoreError(channel.Send(answer.kType, EncodeProto(answer), until), "the caller sees it");
    }
  });
  Outcome outcome = OutcomeOf({"restart", "--address", dir->path() + "/gantry.sock"});
  keeper.join();
  EXPECT_EQ(asked, link::Type::kUpgrade);
  return outcome;
}

TEST(CommandRestart, NamesTheNewEngine) {
  const Outcome outcome = RestartWith(link::Upgraded{.engine_pid = 42});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "engine 42 is in charge\n");
}

TEST(CommandRestart, FailsWhereTheNewEngineDoes) {
  const Outcome outcome =
      RestartWith(link::Failed{static_cast<int32_t>(Code::kFailedPrecondition), "it ended"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "gantryctl: it ended\n");
}

TEST(CommandDoctor, ReportsABadConfigurationAndBackendsThatWereRefused) {
  v1::StatusResponse status;
  v1::BackendStatus& backend = *status.add_backends();
  backend.set_name("mine");
  backend.set_error("is for another gantry");
  FakeEngine engine(status.SerializeAsString());
  const auto dir = os::TempDir::Create();
  const std::string config = dir->path() + "/g.yaml";
  ASSERT_TRUE(ReplaceFile(config, "x: 1\n", 0600).has_value());
  // No plugin is there: whoever asks for one would run this program.
  setenv("GANTRY_LIBEXEC_DIR", dir->path().c_str(), 1);
  const Outcome outcome =
      OutcomeOf({"doctor", "--json", "--config", config, "--address", engine.address()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, HasSubstr("g.yaml:1:1': x: unknown key"));
  EXPECT_THAT(outcome.out, HasSubstr("is for another gantry"));
  unsetenv("GANTRY_LIBEXEC_DIR");
}

}  // namespace
}  // namespace gantry::ctl
