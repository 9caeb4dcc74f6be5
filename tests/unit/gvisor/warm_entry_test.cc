// SPDX-License-Identifier: Apache-2.0
//
// Sentries of runsc itself that are booted before there is a pod, and become one's. Needs root.
#include "plugins/gvisor/warm/warm_entry.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/container/root_container.h"
#include "plugins/gvisor/launch/bounded_log.h"
#include "plugins/gvisor/pod/own_root.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr std::chrono::seconds kEntryLimit{20};

class WarmEntryTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    const auto binary = RealRunsc(GetParam());
    if (!binary) {
      GTEST_SKIP() << "runsc " << GetParam() << " is not in the cache: run ./run setup e2e";
    }
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    for (const char* name : {"/folder", "/bundle"}) {
      ASSERT_TRUE(os::MakeDirs(dir_.path() + name, 0700));
    }
    handler_.options.binary_name = *binary;
    handler_.options.root = dir_.path() + "/root";
    handler_.options.timeout = kEntryLimit;
    const auto id = SandboxId::Parse("pod");
    ASSERT_TRUE(id);
    pod_ = std::make_unique<Pod>(*id, Namespace(), context_, handler_.options, handler_.flags);
  }

  void TearDown() override {
    if (pod_ && pod_->process()) {
      IgnoreError(pod_->process()->Signal(SIGKILL), "it has ended");
    }
  }

  std::string Folder() const { return dir_.path() + "/folder"; }

  std::string Bundle() const { return dir_.path() + "/bundle"; }

  Result<WarmEntry> Boot() {
    return BootWarm(own_, runscs_, handler_, Folder(),
                    [this](const auto& process) { spawned_.push_back(process); });
  }

  void BootAndGive() {
    auto entry = Boot();
    ASSERT_TRUE(entry) << entry.error().message;
    const Status given = GiveTo(*pod_, *entry, {.bundle = Bundle(), .cgroups = {}, .netns = {}});
    ASSERT_TRUE(given) << given.error().message;
  }

  os::TempDir dir_;
  FakeSandboxContext own_;
  FakeSandboxContext context_;
  RunscRegistry runscs_;
  WarmHandler handler_{.name = "a", .options = {}, .flags = {}};
  std::vector<std::shared_ptr<HostProcess>> spawned_;
  std::unique_ptr<Pod> pod_;
};

TEST_P(WarmEntryTest, WaitsInItsFolder) {
  auto entry = Boot();
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_FALSE(entry->process->Ended());
  EXPECT_THAT(spawned_, ElementsAre(entry->process));
  EXPECT_THAT(own_.Tags(), Contains("warm/boot"));
  EXPECT_THAT(NamesIn(Folder()), ElementsAre("sentry.sock"));
  ContainerManager manager(entry->record.socket);
  const auto state = manager.State("gantry--root", std::chrono::steady_clock::now() + kEntryLimit);
  ASSERT_TRUE(state) << state.error().text;
  EXPECT_EQ(*state, RuntimeState::kCreated);
  Discard(*entry);
  EXPECT_TRUE(entry->process->Ended());
  EXPECT_FALSE(Exists(Folder()));
}

TEST_P(WarmEntryTest, BecomesThePods) {
  BootAndGive();
  EXPECT_FALSE(Exists(Folder()));
  EXPECT_THAT(NamesIn(Bundle()), ElementsAre("sentry.sock"));
  EXPECT_THAT(context_.stored, Contains(testing::Key("runsc")));
  EXPECT_TRUE(KeptSentryLog(context_));
  EXPECT_THAT(own_.stored, testing::IsEmpty());
  const auto saved = PodRecord::FromJson(context_.blob);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->pid, pod_->process()->pid().value);
  EXPECT_EQ(saved->start_time, pod_->process()->start_time());
  EXPECT_EQ(saved->socket, Bundle() + "/sentry.sock");
  EXPECT_EQ(saved->place.bundle, Bundle());
  EXPECT_THAT(saved->place.flags, Contains("--root=" + Bundle()));
  EXPECT_EQ(saved->RootId(pod_->id()), "gantry--root");
}

TEST_P(WarmEntryTest, RunsItsRootFromThePodsPlace) {
  BootAndGive();
  const Status started = StartPod(*pod_);
  ASSERT_TRUE(started) << started.error().message;
  const Status named = SetHostname(*pod_, "web-0", pod_->StepDeadline());
  EXPECT_TRUE(named) << named.error().message;
  const auto sentry = pod_->sentry();
  ASSERT_TRUE(
      sentry->manager().Signal({.container = pod_->RootId()}, SIGTERM, pod_->StepDeadline()));
  sentry->Hangup();
  const auto end = pod_->process()->Wait(kEntryLimit);
  ASSERT_TRUE(end) << end.error().message;
  // It may not wait for the signal yet.
  EXPECT_THAT(end->code(), testing::AnyOf(0U, 128U + SIGTERM));
}

TEST_P(WarmEntryTest, SaysThatANameCannotBe) {
  BootAndGive();
  ASSERT_TRUE(StartPod(*pod_));
  const Status named = SetHostname(*pod_, std::string(65, 'x'), pod_->StepDeadline());
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message, HasSubstr("its program ended with 22"));
}

TEST_P(WarmEntryTest, StaysWhatItIsOverAnEngine) {
  BootAndGive();
  ASSERT_TRUE(StartPod(*pod_));
  const auto process = pod_->process();
  auto saved = PodRecord::FromJson(context_.blob);
  ASSERT_TRUE(saved);
  Pod next(pod_->id(), Namespace(), context_, handler_.options, handler_.flags);
  next.Load(*saved);
  next.Have(process,
            std::make_shared<Sentry>(context_, next.RootId(), saved->socket, next.StateSaver()));
  ASSERT_TRUE(next.sentry()->Recover(saved->state, next.StepDeadline()));
  EXPECT_TRUE(next.sentry()->root_started());
}

TEST_P(WarmEntryTest, HasTheKeyOfAnOrdinaryPod) {
  auto entry = Boot();
  ASSERT_TRUE(entry) << entry.error().message;
  PauseSpecRequest pod;
  pod.hostname = "web-0";
  pod.network = "/run/netns/x";
  EXPECT_EQ(DifferenceOf(entry->key, MakeWarmKey(*entry->runsc, handler_.flags, pod, {})), "");
  Discard(*entry);
}

TEST_P(WarmEntryTest, IsNobodysWhereItCannotBeGiven) {
  auto entry = Boot();
  ASSERT_TRUE(entry) << entry.error().message;
  const Status given =
      GiveTo(*pod_, *entry, {.bundle = dir_.path() + "/none", .cgroups = {}, .netns = {}});
  ASSERT_FALSE(given);
  EXPECT_THAT(given.error().message, HasSubstr("/none/sentry.sock"));
  EXPECT_EQ(pod_->process(), nullptr);
  EXPECT_EQ(context_.blob, "");
  Discard(*entry);
  EXPECT_EQ(own_.Alive(), 0U);
}

TEST_P(WarmEntryTest, SaysThatItIsOnAnotherFileSystem) {
  auto other = os::TempDir::Create("/dev/shm/gantry-");
  struct stat here{};
  struct stat there{};
  if (!other || stat(Bundle().c_str(), &here) != 0 || stat(other->path().c_str(), &there) != 0 ||
      here.st_dev == there.st_dev) {
    GTEST_SKIP() << "/dev/shm is no file system of its own here";
  }
  auto entry = Boot();
  ASSERT_TRUE(entry) << entry.error().message;
  const Status given = GiveTo(*pod_, *entry, {.bundle = other->path(), .cgroups = {}, .netns = {}});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(given.error().message, HasSubstr("set the option 'root'"));
  Discard(*entry);
}

TEST_P(WarmEntryTest, NeedsABuildThatStartsSandboxes) {
  handler_.options.binary_name = FakeRunsc{.boot = "exit 3"}.WriteTo(dir_.path());
  const auto entry = Boot();
  ASSERT_FALSE(entry);
  EXPECT_THAT(entry.error().message, HasSubstr("by a canary sandbox"));
  EXPECT_THAT(own_.Tags(), Not(Contains("warm/boot")));
  EXPECT_EQ(own_.Alive(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Releases, WarmEntryTest, testing::Values("20240729", "20260905"));

}  // namespace
}  // namespace gantry::gvisor
