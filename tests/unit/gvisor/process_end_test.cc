// SPDX-License-Identifier: Apache-2.0
//
// How the end of a container is told, and whether memory is told for the reason: with
// processes of the host that stand for sentry and gofer, and a cgroup of plain files.
#include "plugins/gvisor/container/process_end.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>

#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/launch/sentry_start.h"
#include "plugins/gvisor/pod/out_of_memory.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;

constexpr std::chrono::seconds kEndLimit{10};

class ProcessEndTest : public testing::Test {
 protected:
  ProcessEndTest() {
    SetKills(3);
    PodRecord record;
    record.place.cgroups = {files_.path()};
    record.oom_kills = 3;
    pod_->Load(std::move(record));
    pod_->Have(sentry_, nullptr);
  }

  void SetKills(int kills) {
    files_.Put("memory.oom_control", "oom_kill " + std::to_string(kills) + "\n");
  }

  std::shared_ptr<HostProcess> Sleep() {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "1000"};
    return *sandbox_.Spawn(std::move(request));
  }

  /// As the keeper sees it.
  static void End(HostProcess& process, int signal) {
    ASSERT_TRUE(process.Signal(signal));
    ASSERT_TRUE(process.Wait(kEndLimit));
  }

  ExitWait::Ended Teller(const std::string& container = "c1") {
    return TellEnd(report_, {.pod = pod_,
                             .path = files_.path() + "/init.exit",
                             .name = "wait",
                             .container = container,
                             .gofer = gofer_});
  }

  os::FakeCgroupFs files_;
  FakeSandboxContext sandbox_;
  std::shared_ptr<HostProcess> sentry_ = Sleep();
  std::shared_ptr<HostProcess> gofer_ = Sleep();
  std::shared_ptr<Pod> pod_ =
      std::make_shared<Pod>(*SandboxId::Parse("p1"), Namespace(), sandbox_, Options(), Flags());
  FakeContainerContext container_{"c1"};
  std::shared_ptr<EndReport> report_ = std::make_shared<EndReport>(container_);
};

TEST_F(ProcessEndTest, IsTheSentrysWord) {
  Teller()(7);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 7"));
  const auto known = KnownProcess::Read(files_.path() + "/init.exit");
  ASSERT_TRUE(known && known->exit);
  EXPECT_EQ(known->exit->status, 7U);
}

TEST_F(ProcessEndTest, LeavesNothingStoredWhenItIsTold) {
  ASSERT_TRUE(sandbox_.Store("wait", UniqueFd(dup(0))));
  bool stored = true;
  container_.events.on_word = [&](const std::string&) {
    stored = sandbox_.stored.contains("wait");
  };
  Teller()(7);
  EXPECT_FALSE(stored);
}

/// A sentry with processes, and whom of them it has been told to kill.
class LeftoversTest : public ProcessEndTest {
 protected:
  LeftoversTest() {
    pod_->Have(sentry_, std::make_shared<Sentry>(sandbox_, "p1", socket_,
                                                 [](const SentryState&) { return Status(); }));
  }

  FakeAnswer Answer(const Json& request) {
    const std::lock_guard lock(mutex_);
    if (request["method"] == "containerManager.Processes") {
      Json lines = Json::array();
      for (const int pid : alive_) {
        lines.push_back({{"pid", pid}});
      }
      return FakeAnswer::Of(lines);
    }
    EXPECT_EQ(request["method"], kSignal);
    EXPECT_EQ(request["arg"]["Mode"], 0) << "not to all";
    EXPECT_EQ(request["arg"]["CID"], "c1");
    killed_.push_back(request["arg"]["PID"]);
    // One that was forked meanwhile.
    alive_.insert(9);
    return FakeAnswer::Of(Json::object());
  }

  std::vector<int> killed() {
    const std::lock_guard lock(mutex_);
    return killed_;
  }

  const std::string socket_ = files_.path() + "/control.sock";
  /// Guards what follows.
  std::mutex mutex_;
  std::set<int> alive_ = {7, 8};
  std::vector<int> killed_;
  FakeSentry server_{
      socket_, [this](const Json& request, std::vector<UniqueFd>&) { return Answer(request); }};
};

TEST_F(LeftoversTest, OfAContainerAreKilledBeforeItsEndIsTold) {
  container_.events.on_word = [&](const std::string&) {
    EXPECT_THAT(killed(), ElementsAre(7, 8, 9));
  };
  TellEnd(report_, {.pod = pod_,
                    .path = files_.path() + "/init.exit",
                    .name = "wait",
                    .container = "c1",
                    .leaves_processes = true})(7);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 7"));
}

TEST_F(LeftoversTest, OfOneWithAPidNamespaceAreTheSentrysToKill) {
  Teller()(7);
  EXPECT_THAT(killed(), IsEmpty());
}

TEST_F(ProcessEndTest, OfASentryThatIsKilledIsAKilledOne) {
  End(*sentry_, SIGKILL);
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 137"));
}

TEST_F(ProcessEndTest, OfASentryThatMemoryHasEndedSaysSoFirst) {
  SetKills(4);
  End(*sentry_, SIGKILL);
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("out of memory", "exited 137"));
}

TEST_F(ProcessEndTest, OfASentryThatIsKilledAwaitsTheKeepersWord) {
  SetKills(4);
  // Not reaped yet.
  ASSERT_TRUE(sentry_->Signal(SIGKILL));
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("out of memory", "exited 137"));
}

TEST_F(ProcessEndTest, OfASentryThatHasEndedOtherwiseIsNotForMemory) {
  SetKills(4);
  End(*sentry_, SIGTERM);
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 137"));
}

TEST_F(ProcessEndTest, OfASentryOfWhichNothingIsKnownIsByTheCounter) {
  pod_->Have(nullptr, nullptr);
  SetKills(4);
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("out of memory", "exited 137"));
}

TEST_F(ProcessEndTest, OfAGoferThatMemoryHasEndedSaysSoFirst) {
  SetKills(4);
  End(*gofer_, SIGKILL);
  constexpr uint32_t kKilledWith9 = 137;
  Teller()(kKilledWith9);
  EXPECT_THAT(container_.events.words(), ElementsAre("out of memory", "exited 137"));
}

TEST_F(ProcessEndTest, ByASignalIsNotForMemory) {
  SetKills(4);
  constexpr uint32_t kKilledWith9 = 137;
  Teller()(kKilledWith9);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 137")) << "its gofer runs";
}

TEST_F(ProcessEndTest, WithACodeIsNotForMemory) {
  SetKills(4);
  End(*gofer_, SIGKILL);
  Teller()(1);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 1"));
}

TEST_F(ProcessEndTest, OfAnExecIsNoWordAboutItsContainer) {
  report_ = std::make_shared<EndReport>(container_.init());
  SetKills(4);
  End(*sentry_, SIGKILL);
  Teller("")(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("exited 137"));
}

TEST_F(ProcessEndTest, IsToldFromItsFileAsItWas) {
  SetKills(4);
  End(*sentry_, SIGKILL);
  Teller()(std::nullopt);
  EXPECT_TRUE(report_->out_of_memory());
  const auto known = KnownProcess::Read(files_.path() + "/init.exit");
  ASSERT_TRUE(known) << known.error().message;
  FakeContainerContext again("c1");
  EndReport report(again);
  EXPECT_TRUE(report.TellKnown(*known));
  EXPECT_THAT(again.events.words(), ElementsAre("out of memory", "exited 137"));
}

TEST_F(ProcessEndTest, IsKnownWhenTheCgroupHasGone) {
  SetKills(4);
  KeepWhetherMemoryEndedIt(*pod_);
  EXPECT_FALSE(pod_->record().out_of_memory) << "its sentry runs";
  End(*sentry_, SIGKILL);
  KeepWhetherMemoryEndedIt(*pod_);
  SetKills(0);
  Teller()(std::nullopt);
  EXPECT_THAT(container_.events.words(), ElementsAre("out of memory", "exited 137"));
  EXPECT_TRUE(PodRecord::FromJson(sandbox_.blob)->out_of_memory) << "to the next engine too";
}

TEST_F(ProcessEndTest, OfASentryThatCrashesLeavesItsReasonInTheLog) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "exit 2"};
  const auto crashed = *sandbox_.Spawn(std::move(request));
  ASSERT_TRUE(crashed->Wait(kEndLimit));
  pod_->Have(crashed, nullptr);
  const UniqueFd log(memfd_create("log", MFD_CLOEXEC));
  const std::string said =
      std::string(4096, 'x') + "\npanic: no such task\n\ngoroutine 1 [running]:\n";
  ASSERT_EQ(write(log.get(), said.data(), said.size()), static_cast<ssize_t>(said.size()));
  ASSERT_TRUE(sandbox_.Store(kSentryLogName, log));
  ASSERT_TRUE(RemoveSentry(*pod_, nullptr, files_.path()));
  EXPECT_THAT(sandbox_.log, Contains(HasSubstr("crashed: panic: no such task")));
  EXPECT_FALSE(KeptSentryLog(sandbox_));
}

TEST_F(ProcessEndTest, KeepsTheCountOverARestart) {
  const auto again = PodRecord::FromJson(pod_->record().ToJson());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->oom_kills, 3U);
}

}  // namespace
}  // namespace gantry::gvisor
