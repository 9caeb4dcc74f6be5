// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>
#include <gantry/testing/host_process.h>

namespace gantry {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(FakeContainerContext, HearsInWhichOrderItWasTold) {
  FakeContainerContext context("c1");
  std::string last;
  context.events.on_word = [&](const std::string& word) {
    last = word;
    EXPECT_THAT(context.events.words(), Contains(word)) << "who was told looks there";
    EXPECT_EQ(context.process.exited.has_value(), word.starts_with("exited"));
  };
  ASSERT_TRUE(context.init().Bind(RunShell("exit 0").value()));
  context.OutOfMemory();
  context.init().Exited({137, 1});
  EXPECT_THAT(context.events.words(), ElementsAre("bound", "out of memory", "exited 137"));
  EXPECT_EQ(last, "exited 137");
}

TEST(FakeContainerContext, RemembersWhatItWasTold) {
  FakeContainerContext context("c1");
  context.cgroups = {"/sys/fs/cgroup/c1"};
  EXPECT_FALSE(context.made_cgroups);
  EXPECT_THAT(context.MakeCgroups(CgroupDevices::kOfSpec).value(),
              ElementsAre("/sys/fs/cgroup/c1"));
  EXPECT_EQ(context.made_cgroups, CgroupDevices::kOfSpec);
  context.inside_hooks.start_container = true;
  EXPECT_TRUE(context.BeginHooks()->start_container);
  ASSERT_TRUE(context.RunHooks(HookPoint::kCreate, {1}));
  ASSERT_TRUE(context.RunHooks(HookPoint::kDelete, {}));
  EXPECT_THAT(context.hooks, ElementsAre(HookPoint::kCreate, HookPoint::kDelete));
  const auto process = RunShell("exit 0").value();
  ASSERT_TRUE(context.UseCgroupsOf(*process));
  EXPECT_EQ(context.cgroups_of, process->pid());
  context.UseStateDirs({"/run/x"});
  EXPECT_THAT(context.state_dirs, ElementsAre("/run/x"));
  context.UseCleanup({{"/bin/true"}, {}, "/"});
  EXPECT_TRUE(context.cleanup);
}

TEST(FakeContainerContext, KeepsItsStateOverARestart) {
  FakeContainerContext context("c1");
  ASSERT_TRUE(context.Save("state"));
  ASSERT_TRUE(context.init().Bind(RunShell("exit 0").value()));
  EXPECT_EQ(context.Save(std::string((64 << 10) + 1, 'y')).error().code, Code::kInvalidArgument);
  context.RestartEngine();
  EXPECT_EQ(context.blob, "state");
  EXPECT_EQ(context.process.bound, nullptr);
}

}  // namespace
}  // namespace gantry
