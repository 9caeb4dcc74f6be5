// SPDX-License-Identifier: Apache-2.0
//
// Who hears of an end, and of which: of processes, of the machine with all of them, for want of
// memory.
#include <csignal>
#include <limits>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/container/exec.h"
#include "plugins/vmm/container/pod_record.h"
#include "plugins/vmm/container/process_ends.h"
#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What an engine of a newer version has kept beside.
struct FromLater {
  std::string said{};

  void Each(this auto& self, auto&& field) { field(100, self.said); }
};

TEST(ProcessEnds, AreThoseOfProcessesThatAreKnownAndTheFirstWordCounts) {
  TestContext context("one");
  const auto report = std::make_shared<EndReport>(context.fake);
  ProcessEnds ends;
  ends.Add("one", "", report);
  ends.OnExited({.container = "other", .exec = "", .exit = {.status = 1, .exited_at_ns = 1}});
  ends.OnExited({.container = "one", .exec = "exec", .exit = {.status = 2, .exited_at_ns = 1}});
  EXPECT_THAT(context.words(), IsEmpty());
  ends.OnExited({.container = "one", .exec = "", .exit = {.status = 3, .exited_at_ns = 1}});
  ends.OnExited({.container = "one", .exec = "", .exit = {.status = 0, .exited_at_ns = 1}});
  ends.OnMachineEnded(true);
  EXPECT_THAT(context.words(), ElementsAre("exited 3"));
}

// A guest that was taken over lists what it likes.
TEST(ProcessEnds, OfAListThatLiesAreNoOnesOrMadeHarmless) {
  constexpr uint32_t kExited = 3;
  constexpr uint32_t kNoState = 77;
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min();
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  TestContext context("one");
  const auto report = std::make_shared<EndReport>(context.fake);
  ProcessEnds ends;
  ends.Add("one", "", report);
  protocol::ListAnswer list;
  for (const char* const name : {"", "other", "../../etc", "a\nb"}) {
    list.containers.push_back(
        {.container = name, .oom_kills = 9, .processes = {{.exec = "", .state = kExited}}});
  }
  list.containers.push_back({.container = "one",
                             .processes = {{.exec = "of-none", .state = kExited},
                                           {.exec = "", .state = kNoState},
                                           {.exec = "", .pid = -1, .state = kExited - 1}}});
  ends.OnListed(list);
  EXPECT_THAT(context.words(), IsEmpty());
  list.containers = {{.container = "one",
                      .processes = {{.state = kExited, .status = 70000, .exited_at_ns = kLast},
                                    {.state = kExited, .status = 0, .exited_at_ns = kFirst}}}};
  ends.OnListed(list);
  EXPECT_THAT(context.words(), ElementsAre("exited 255"));
  const int64_t last = EndOf({.status = 1, .exited_at_ns = kLast}, 0).exited_at_ns;
  EXPECT_LE(last, ExitedNow(0).exited_at_ns);
  EXPECT_EQ(EndOf({.status = 1, .exited_at_ns = kFirst}, 7).exited_at_ns, 7);
}

// A clock that runs backwards, or was never set.
TEST(ProcessEnds, AreNeverBeforeTheBegin) {
  const auto told_at = [](const ProcessEnds& ends, const FakeProcessContext& context) {
    ends.OnExited({.container = "one", .exec = "e", .exit = {.status = 0, .exited_at_ns = 5}});
    return context.exited.value_or(ExitStatus()).exited_at_ns;
  };
  FakeProcessContext context("one", "e");
  ProcessEnds ends;
  const int64_t before = ExitedNow(0).exited_at_ns;
  ends.Add("one", "e", std::make_shared<EndReport>(context));
  EXPECT_GE(told_at(ends, context), before);
  FakeProcessContext started("one", "e");
  ends.Add("one", "e", std::make_shared<EndReport>(started), nullptr, 4);
  ends.Starting("one", "e");
  EXPECT_GE(told_at(ends, started), before);
  FakeProcessContext recovered("one", "e");
  ends.Add("one", "e", std::make_shared<EndReport>(recovered), nullptr, 4);
  EXPECT_EQ(told_at(ends, recovered), 5) << "it may have been while nobody was there";
}

TEST(ProcessEnds, AreAllTheMachinesWhenThatEndsAndNoneIsSuccess) {
  TestContext one("one");
  TestContext late("late");
  const auto report = std::make_shared<EndReport>(one.fake);
  const auto after = std::make_shared<EndReport>(late.fake);
  ProcessEnds ends;
  const uint64_t before = ends.OnMachineStarted();
  ends.Add("one", "", report);
  ends.OnMachineEnded(true);
  EXPECT_THAT(one.words(), ElementsAre("out of memory", "exited 137"));
  ends.Add("late", "", after);
  EXPECT_THAT(late.words(), ElementsAre("out of memory", "exited 137"));
  const uint64_t machine = ends.OnMachineStarted();
  TestContext anew("anew");
  const auto next = std::make_shared<EndReport>(anew.fake);
  ends.Add("anew", "", next);
  EXPECT_THAT(anew.words(), IsEmpty()) << "it is another machine";
  ends.OnMachineEnded(false, before);
  EXPECT_THAT(anew.words(), IsEmpty()) << "that was the one before";
  ends.OnMachineEnded(false, machine);
  EXPECT_THAT(anew.words(), ElementsAre("exited 137"));
}

TEST(ContainerRecord, TellsEachKillOnceOverARestart) {
  TestContext context("one");
  ContainerRecord record(context.fake);
  record.OutOfMemory(1);
  EXPECT_EQ(context.fake.blob, "") << "a container that is not made is not on record";
  ASSERT_TRUE(record.Keep({.cpu_quota = 1, .cpu_period = 2, .memory = 3}));
  record.OutOfMemory(1);
  record.OutOfMemory(2);
  EXPECT_THAT(context.words(), ElementsAre("out of memory", "out of memory"));
  ContainerRecord next(context.fake);
  ASSERT_TRUE(next.TakeUp(context.fake.blob));
  EXPECT_EQ(next.limits(), (Limits{1, 2, 3}));
  EXPECT_GT(next.made_at_ns(), 0);
  EXPECT_EQ(next.made_at_ns(), record.made_at_ns());
  next.OutOfMemory(2);
  EXPECT_EQ(context.words().size(), 2U);
  next.OutOfMemory(3);
  EXPECT_EQ(context.words().size(), 3U);
  for (uint64_t kills = 4; kills < 1000; ++kills) {
    next.OutOfMemory(kills);
  }
  EXPECT_LT(context.words().size(), 200U) << "a guest that counts without end";
  next.Retire();
  next.OutOfMemory(2000);
}

TEST(ContainerRecord, IsOneWithoutLimitsAndNoOtherBytesAre) {
  TestContext context("one");
  ContainerRecord record(context.fake);
  ASSERT_TRUE(record.Keep({.cpu_quota = -1, .cpu_period = 0, .memory = -1}));
  ContainerRecord next(context.fake);
  EXPECT_TRUE(next.TakeUp(context.fake.blob));
  EXPECT_EQ(next.limits(), (Limits{-1, 0, -1})) << "-1 is the specification's word for no limit";
  ASSERT_TRUE(record.Keep({}));
  const std::string bytes = context.fake.blob;
  EXPECT_TRUE(next.TakeUp(bytes));
  EXPECT_EQ(next.limits(), Limits());
  EXPECT_TRUE(next.TakeUp(bytes + EncodeProto(FromLater{.said = "more"})));
  for (const std::string& other :
       {std::string(), std::string("{}"), std::string("pause"), bytes.substr(0, bytes.size() - 1),
        bytes + '\xff', EncodeProto(PodRecord{.root = "one"})}) {
    EXPECT_FALSE(next.TakeUp(other)) << testing::PrintToString(other);
  }
}

using MachineEnd = PodTest;

TEST_F(MachineEnd, IsThatOfAllContainersAndExecs) {
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  TestExecContext its(request.id.str(), "exec");
  VmmExec exec(pod_, request.id.str(), ExecOf("exec", {.script = "sleep 1000"}), its);
  ASSERT_TRUE(exec.Start());
  machine_->End("QEMU was killed");
  EXPECT_THAT(context.words(), ElementsAre("exited 137"));
  EXPECT_EQ(its.WaitForExit(), 137U);
  EXPECT_TRUE(sandbox_.WaitForLog("QEMU was killed"));
  EXPECT_EQ(container->Kill(SIGKILL).error().code, Code::kNotFound);
  EXPECT_TRUE(container->KillAll(SIGKILL));
  EXPECT_EQ(container->Pause().error().code, Code::kUnavailable);
  EXPECT_TRUE(exec.Delete());
  EXPECT_TRUE(container->Delete());
  EXPECT_THAT(vm_.storage.added, IsEmpty());
}

TEST_F(MachineEnd, ForWantOfMemoryIsToldBefore) {
  char name[] = "/tmp/gantry-cgroup-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(folder + "/memory.events", "oom 3\noom_kill 1\n", 0600));
  ASSERT_TRUE(pod_->Boot("", {.cgroups = {folder}}));
  const ContainerRequest request = RequestOf({.script = "sleep 1000"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  ASSERT_TRUE(WriteFile(folder + "/memory.events", "oom 4\noom_kill 2\n", 0600));
  machine_->End("QEMU was killed");
  EXPECT_THAT(context.words(), ElementsAre("out of memory", "exited 137"));
  EXPECT_TRUE(container->Delete());
  EXPECT_TRUE(RemoveTree(folder));
}

TEST_F(MachineEnd, OfAContainerForWantOfMemoryIsToldBefore) {
  const ContainerRequest request =
      RequestOf({.linux_part = R"("resources": {"memory": {"limit": 16777216}})",
                 .script = "exec busybox tail /dev/zero"});
  TestContext context(request.id.str());
  auto container = Run(request, context);
  EXPECT_EQ(context.WaitForExit(), 137U);
  EXPECT_THAT(context.words(), ElementsAre("out of memory", "exited 137"));
  EXPECT_TRUE(container->Delete());
}

}  // namespace
}  // namespace gantry::vmm
