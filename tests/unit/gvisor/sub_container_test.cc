// SPDX-License-Identifier: Apache-2.0
//
// When a container of a pod can be measured, and what is said when it cannot; and what an
// engine makes of one whose end the engine before has written down.
#include "plugins/gvisor/container/sub_container.h"

#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>

#include "plugins/gvisor/container/process_end.h"
#include "plugins/gvisor/sentry/durable_call.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Knows what an engine would have found that was started between any two drops.
struct WatchedStore : FakeSandboxContext {
  void Drop(std::string_view name) override {
    FakeSandboxContext::Drop(name);
    found.push_back(StoredNames());
  }

  std::vector<std::vector<std::string>> found;
};

class SubContainerTest : public testing::Test {
 protected:
  SubContainerTest() {
    files_.Put("memory.oom_control", "oom_kill 0\n");
    PodRecord record;
    record.place.cgroups = {files_.path()};
    pod_->Load(std::move(record));
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    process_ = *sandbox_.Spawn(std::move(request));
    const std::string socket = files_.path() + "/control.sock";
    pod_->Have(process_, std::make_shared<Sentry>(sandbox_, "p1", socket, pod_->StateSaver()));
  }

  ContainerRequest Request() const {
    ContainerRequest request;
    request.id = *ContainerId::Parse("c1");
    request.bundle = files_.path();
    request.spec_json = R"({"process":{"args":["true"],"cwd":"/"},"root":{"path":"/"}})";
    return request;
  }

  void EndSentry() {
    ASSERT_TRUE(process_->Signal(SIGKILL));
    ASSERT_TRUE(process_->Wait(std::chrono::seconds(10)));
  }

  os::FakeCgroupFs files_;
  WatchedStore sandbox_;
  std::shared_ptr<HostProcess> process_;
  std::shared_ptr<Pod> pod_ =
      std::make_shared<Pod>(*SandboxId::Parse("p1"), Namespace(), sandbox_, Options(), Flags());
  FakeContainerContext context_{"c1"};
  SubContainer container_{Request(), context_, pod_};
};

TEST_F(SubContainerTest, HasNoStatsBeforeItsStart) {
  // Of another container.
  files_.Put("memory.oom_control", "oom_kill 1\n");
  const auto stats = container_.Stats();
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(stats->memory.usage_bytes, 0U);
  EXPECT_EQ(stats->memory.oom_kills, 0U);
}

TEST_F(SubContainerTest, OfOneThatWasKilledHasNoStatsBeforeItsStart) {
  ASSERT_TRUE(container_.Kill(SIGKILL));
  const auto stats = container_.Stats();
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(stats->memory.usage_bytes, 0U);
  EXPECT_EQ(stats->memory.oom_kills, 0U);
}

TEST_F(SubContainerTest, SaysInItsStatsThatMemoryHasEndedTheSentry) {
  EndSentry();
  EXPECT_EQ(container_.Stats()->memory.oom_kills, 0U);
  files_.Put("memory.oom_control", "oom_kill 1\n");
  EXPECT_EQ(container_.Stats()->memory.oom_kills, 1U);
}

TEST_F(SubContainerTest, RunsHooksOfPoststopWithItsDelete) {
  EXPECT_TRUE(container_.Delete());
  EXPECT_THAT(context_.hooks, ElementsAre(HookPoint::kDelete));
}

TEST_F(SubContainerTest, NamesTheHooksThatNobodyRuns) {
  struct Logging : SubContainer {
    using SubContainer::LogHooksLeftOut;
    using SubContainer::SubContainer;
  };

  const Logging container(Request(), context_, pod_);
  container.LogHooksLeftOut({.create_container = true, .start_container = true}, true);
  EXPECT_THAT(sandbox_.log, ElementsAre(HasSubstr("its hooks of startContainer are not run")));
  sandbox_.log.clear();
  container.LogHooksLeftOut({.create_container = true, .start_container = false}, false);
  EXPECT_THAT(sandbox_.log, ElementsAre(HasSubstr("its hooks of createContainer are not run")));
  sandbox_.log.clear();
  container.LogHooksLeftOut({}, false);
  EXPECT_THAT(sandbox_.log, IsEmpty());
}

TEST_F(SubContainerTest, TellsTheNextEngineHowItHasEnded) {
  const KnownProcess ended{.pid = 0, .exit = ExitStatus{3, 1}};
  ASSERT_TRUE(ended.Write(files_.path() + "/init.exit"));
  // The engine before was killed before it let go of that.
  ASSERT_TRUE(sandbox_.Store(StoreName("wait", "c1"), UniqueFd(dup(0))));
  const Status recovered = container_.Recover("sub");
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_THAT(context_.events.words(), ElementsAre("exited 3"));
  EXPECT_THAT(sandbox_.stored, IsEmpty());
}

TEST_F(SubContainerTest, ThatHasEndedIsNotSignalledAsAWholeOnceMore) {
  const KnownProcess ended{.pid = 0, .exit = ExitStatus{3, 1}};
  ASSERT_TRUE(ended.Write(files_.path() + "/init.exit"));
  const urpc::FakeSentry server(files_.path() + "/control.sock",
                                [](const urpc::Json&, std::vector<UniqueFd>&) {
                                  return urpc::FakeAnswer::Of(urpc::Json::object());
                                });
  ASSERT_TRUE(container_.Recover("sub"));
  EXPECT_TRUE(container_.KillAll(SIGKILL));
  EXPECT_EQ(server.accepted(), 0U);
}

/// An engine was killed before it heard that the start had failed.
TEST_F(SubContainerTest, WhoseStartHasFailedIsMadeAgainBeforeTheNext) {
  std::mutex mutex;
  std::vector<std::string> asked;
  const std::string socket = files_.path() + "/control.sock";
  urpc::FakeSentry server(socket, [&](const urpc::Json& request, std::vector<UniqueFd>&) {
    const std::string method = request["method"];
    const std::lock_guard lock(mutex);
    asked.push_back(method.substr(method.find('.') + 1));
    return method == kStartSubcontainer ? urpc::FakeAnswer::Refusing("no such file or directory")
                                        : urpc::FakeAnswer::Of(urpc::Json::object());
  });
  auto call = DurableCall::Begin(sandbox_, socket, CallNames::OfContainer("c1").start,
                                 {.method = kStartSubcontainer, .arg = "{}"}, urpc::Soon());
  ASSERT_TRUE(call);
  // The answer is there, and nobody has heard it.
  ASSERT_FALSE(call->Peek(kStartSubcontainer, urpc::Soon()));
  IgnoreError(container_.Recover("sub"), "here is no gofer to be started");
  EXPECT_FALSE(sandbox_.stored.contains(CallNames::OfContainer("c1").start));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(asked, ElementsAre("StartSubcontainer", "DestroySubcontainer"));
}

/// An engine was killed before it had sent the start, and so may be the one that finds that out.
TEST_F(SubContainerTest, WhoseStartWasNotSentIsTakenForStartedByNoEngine) {
  const std::string socket = files_.path() + "/control.sock";
  const urpc::FakeSentry server(socket, [](const urpc::Json&, std::vector<UniqueFd>&) {
    return urpc::FakeAnswer::Refusing("unknown method");
  });
  const CallNames names = CallNames::OfContainer("c1");
  for (const std::string& name : {names.start, names.wait}) {
    auto stored = urpc::Connection::Open(socket, urpc::Soon());
    ASSERT_TRUE(stored);
    ASSERT_TRUE(sandbox_.Store(name, stored->fd()));
  }
  IgnoreError(container_.Recover("sub"), "here is no gofer to be started");
  EXPECT_THAT(sandbox_.stored, IsEmpty());
  EXPECT_THAT(sandbox_.found, testing::Not(testing::Contains(ElementsAre(names.wait))))
      << "that stands for a container which runs";
}

}  // namespace
}  // namespace gantry::gvisor
