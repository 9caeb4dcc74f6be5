// SPDX-License-Identifier: Apache-2.0
//
// What an exec makes of what one before it with its id has left.
#include "plugins/gvisor/container/exec.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>

#include "core/os/fs.h"
#include "plugins/gvisor/sentry/durable_call.h"
#include "plugins/gvisor/spec/process_spec.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;

class ExecTest : public testing::Test {
 protected:
  ExecTest() {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    pod_->Have(*sandbox_.Spawn(std::move(request)),
               std::make_shared<Sentry>(sandbox_, "c1", socket_,
                                        [](const SentryState&) { return Status(); }));
  }

  std::unique_ptr<GvisorExec> Make(std::string process_json = R"({"args":["true"],"cwd":"/"})") {
    ExecRequest request;
    request.id = *ExecId::Parse("x");
    request.process_json = std::move(process_json);
    return std::make_unique<GvisorExec>(ExecPlace{.container = *ContainerId::Parse("c1"),
                                                  .bundle = folder_.path(),
                                                  .pod = pod_,
                                                  .table = std::make_shared<ExecTable>(),
                                                  .rights = RightsIn(spec_)},
                                        std::move(request), context_);
  }

  /// The sets that an exec is started with, by their names; `net_raw`: as its sentry was started.
  Json RightsOf(std::string process_json, bool net_raw) {
    Flags flags;
    flags.all["net-raw"] = net_raw ? "true" : "false";
    EXPECT_TRUE(pod_->Change([&](PodRecord& record) { record.conf = flags.ConfJson(); }));
    EXPECT_FALSE(Make(std::move(process_json))->Start());
    return asked_for_["Capabilities"];
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  const std::string socket_ = folder_.path() + "/sentry.sock";
  FakeSandboxContext sandbox_;
  std::shared_ptr<Pod> pod_ =
      std::make_shared<Pod>(*SandboxId::Parse("p1"), Namespace(), sandbox_, Options(), Flags());
  EventLog events_;
  FakeProcessContext context_{"c1", events_};
  std::string spec_ = "{}";
  std::atomic<int> asked_ = 0;
  /// What happens while one is started, and what is answered.
  std::function<void()> starting_ = [] {};
  FakeAnswer started_ = FakeAnswer::Refusing("no such file or directory");
  /// What the question for its end is answered.
  FakeAnswer ended_ = FakeAnswer::Of(Json::object());
  /// The last that was to be started.
  Json asked_for_;
  FakeSentry server_{socket_, [this](const Json& request, std::vector<UniqueFd>&) {
                       if (request["method"] == kWaitPid) {
                         return ended_;
                       }
                       if (request["method"] != kExecuteAsync) {
                         return FakeAnswer::Of(Json::object());
                       }
                       ++asked_;
                       asked_for_ = request["arg"];
                       starting_();
                       return started_;
                     }};
};

TEST_F(ExecTest, ThatNeverRanDoesNotEndAsOneBeforeIt) {
  const KnownProcess before{.pid = 7, .exit = ExitStatus{3, 1}};
  ASSERT_TRUE(before.Write(folder_.path() + "/exec-x.pid"));
  EXPECT_FALSE(Make()->Start());
  EXPECT_EQ(Make()->Recover().error().code, Code::kAborted);
  EXPECT_THAT(events_.words(), IsEmpty());
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

TEST_F(ExecTest, IsNotStartedWhileItsSandboxIsSaved) {
  const auto sentry = pod_->sentry();
  ASSERT_TRUE(sentry->Recover({.started = true, .wanted = {}, .stopped = false}, urpc::Soon()));
  Code code = Code::kOk;
  const auto saved = [&] {
    sandbox_.time_left = std::chrono::milliseconds(1);
    code = Make()->Start().error().code;
    return Status();
  };
  ASSERT_TRUE(sentry->Checkpoint("{}", {}, saved, false, urpc::Soon()));
  EXPECT_EQ(code, Code::kDeadlineExceeded);
  EXPECT_EQ(asked_, 0);
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

TEST_F(ExecTest, ThatIsNotStartedIsNotStored) {
  const std::array answers = {FakeAnswer::Refusing("no such file or directory"),
                              FakeAnswer::Of("no number"),
                              FakeAnswer{.bytes = {}, .fds = {}, .then_close = true}};
  for (const FakeAnswer& answer : answers) {
    started_ = answer;
    EXPECT_FALSE(Make()->Start()) << answer.bytes;
    EXPECT_THAT(sandbox_.stored, IsEmpty()) << answer.bytes;
  }
  // It runs, and cannot be kept.
  started_ = FakeAnswer::Of(7);
  starting_ = [this] { mkdir((folder_.path() + "/exec-x.pid").c_str(), 0755); };
  EXPECT_FALSE(Make()->Start());
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

TEST_F(ExecTest, ThatIsNotAnsweredInTimeIsNotStored) {
  started_ = {};
  sandbox_.time_left = std::chrono::milliseconds(50);
  EXPECT_EQ(Make()->Start().error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

TEST_F(ExecTest, IsStoredUntilItsEndIsOnRecord) {
  started_ = FakeAnswer::Of(7);
  ended_ = {};  // It runs.
  const auto exec = Make();
  IgnoreError(exec->Start(), "here nobody watches for its end");
  EXPECT_THAT(sandbox_.stored, ElementsAre(Pair(CallNames::OfExec("c1", "x").wait, testing::_)));
  EXPECT_TRUE(exec->Delete());
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

/// 0 stands for the container's init.
TEST_F(ExecTest, IsNotSignalledBeforeItHasANumber) {
  const auto exec = Make();
  EXPECT_EQ(exec->Kill(SIGKILL).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(exec->ConsoleSignal(SIGINT).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(server_.accepted(), 0U);
}

TEST_F(ExecTest, TellsTheNextEngineHowItHasEnded) {
  const KnownProcess ended{.pid = 7, .exit = ExitStatus{3, 1}};
  ASSERT_TRUE(ended.Write(folder_.path() + "/exec-x.pid"));
  // The engine before was killed before it let go of that.
  ASSERT_TRUE(sandbox_.Store(CallNames::OfExec("c1", "x").wait, UniqueFd(dup(0))));
  EXPECT_TRUE(Make()->Recover());
  EXPECT_THAT(events_.words(), ElementsAre("exited 3"));
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

constexpr uint64_t kChown = 1 << 0;
constexpr uint64_t kKill = 1 << 5;
constexpr uint64_t kNetRaw = 1 << 13;

constexpr const char* kSpecWithRights =
    R"({"ociVersion":"1.2.0","root":{"path":"/"},"process":{"args":["true"],"cwd":"/",
    "capabilities":{
    "bounding":["CAP_CHOWN","CAP_KILL","CAP_NET_RAW"],"effective":["CAP_CHOWN","CAP_NET_RAW"],
    "permitted":["CAP_CHOWN","CAP_NET_RAW"]}}})";

Json SetsOf(uint64_t bounding, uint64_t effective) {
  return {{"BoundingCaps", bounding},
          {"EffectiveCaps", effective},
          {"PermittedCaps", effective},
          {"InheritableCaps", 0},
          {"AmbientCaps", 0}};
}

TEST_F(ExecTest, HasTheContainersRightsWhereItSaysNothingOfThem) {
  spec_ = kSpecWithRights;
  EXPECT_EQ(RightsOf(R"({"args":["true"],"cwd":"/"})", true),
            SetsOf(kChown | kKill | kNetRaw, kChown | kNetRaw));
  EXPECT_EQ(RightsOf(R"({"args":["true"],"cwd":"/","capabilities":null})", false),
            SetsOf(kChown | kKill, kChown));
}

TEST_F(ExecTest, HasNoRightsInAContainerThatHasNone) {
  EXPECT_EQ(RightsOf(R"({"args":["true"],"cwd":"/","user":{"uid":0,"gid":0}})", true),
            SetsOf(0, 0));
}

TEST_F(ExecTest, HasNoRightThatItsContainerHasNot) {
  spec_ = kSpecWithRights;
  EXPECT_EQ(RightsOf(R"({"args":["true"],"cwd":"/","capabilities":{
                "bounding":["CAP_KILL","CAP_SYS_ADMIN"],"effective":["CAP_KILL","CAP_SYS_ADMIN"],
                "permitted":["CAP_KILL","CAP_SYS_ADMIN"]}})",
                     true),
            SetsOf(kKill, kKill));
}

TEST_F(ExecTest, IsRefusedARightThatThereIsNot) {
  const Status started =
      Make(R"({"args":["true"],"cwd":"/","capabilities":{"bounding":["CAP_FLY"]}})")->Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kInvalidArgument);
  EXPECT_THAT(started.error().message, HasSubstr("'CAP_FLY' is no capability"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(ExecTest, HasRawSocketsOnlyWhereItsSentryWasStartedWithThem) {
  spec_ = kSpecWithRights;
  const std::string process = R"({"args":["true"],"cwd":"/","capabilities":{
      "bounding":["CAP_NET_RAW"],"effective":["CAP_NET_RAW"],"permitted":["CAP_NET_RAW"]}})";
  EXPECT_EQ(RightsOf(process, false), SetsOf(0, 0));
  EXPECT_EQ(RightsOf(process, true), SetsOf(kNetRaw, kNetRaw));
}

}  // namespace
}  // namespace gantry::gvisor
