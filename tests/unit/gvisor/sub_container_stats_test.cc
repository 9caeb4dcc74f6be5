// SPDX-License-Identifier: Apache-2.0
//
// When a container of a pod can be measured, and what is said when it cannot.
#include <signal.h>

#include <gtest/gtest.h>

#include "plugins/gvisor/sub_container.h"
#include "tests/unit/gvisor/fake_container.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"
#include "tests/unit/gvisor/metrics_reader.h"
#include "tests/unit/os/fake_cgroupfs.h"

namespace gantry::gvisor {
namespace {

class SubContainerStats : public testing::Test {
 protected:
  SubContainerStats() {
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
    return request;
  }

  void EndSentry() {
    ASSERT_TRUE(process_->Signal(SIGKILL));
    ASSERT_TRUE(process_->Wait(std::chrono::seconds(10)));
  }

  os::FakeCgroupFs files_;
  FakeSandboxContext sandbox_;
  std::shared_ptr<HostProcess> process_;
  std::shared_ptr<Pod> pod_ =
      std::make_shared<Pod>(*SandboxId::Parse("p1"), Namespace(), sandbox_, Options(), Flags());
  FakeContainerContext context_{"c1"};
  SubContainer container_{Request(), context_, pod_};
};

TEST_F(SubContainerStats, BeforeItsStartAreZero) {
  // Of another container.
  files_.Put("memory.oom_control", "oom_kill 1\n");
  const auto stats = container_.Stats();
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(NumberAt(*stats, {4, 33, 2}), 0U);
  EXPECT_EQ(NumberAt(*stats, {9, 3}), 0U);
}

TEST_F(SubContainerStats, OfOneThatWasKilledBeforeItsStartAreZero) {
  ASSERT_TRUE(container_.Kill(SIGKILL));
  const auto stats = container_.Stats();
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(NumberAt(*stats, {4, 33, 2}), 0U);
  EXPECT_EQ(NumberAt(*stats, {9, 3}), 0U);
}

TEST_F(SubContainerStats, SayThatMemoryHasEndedTheSentry) {
  EndSentry();
  EXPECT_EQ(NumberAt(*container_.Stats(), {9, 3}), 0U);
  files_.Put("memory.oom_control", "oom_kill 1\n");
  EXPECT_EQ(NumberAt(*container_.Stats(), {9, 3}), 1U);
}

}  // namespace
}  // namespace gantry::gvisor
