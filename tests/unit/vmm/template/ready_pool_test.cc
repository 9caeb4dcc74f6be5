// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/ready_pool.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/config.h"
#include "plugins/vmm/machine/users.h"
#include "plugins/vmm/template/template_store.h"
#include "tests/unit/vmm/template/ready_rig.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ReadyPoolTest : public ReadyRig {};

TEST_F(ReadyPoolTest, MakesOneTemplateAndRestoresFromIt) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1)) << testing::PrintToString(maker_.log);
  EXPECT_EQ(boots_, 1);
  EXPECT_EQ(snapshots_, 1);
  EXPECT_EQ(restores_, 1);
  EXPECT_THAT(Templates(), SizeIs(1));
  EXPECT_THAT(Waiting(), SizeIs(1));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, AMachineTakesTheOneThatWaits) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_THAT(context_.asked, IsEmpty());
  EXPECT_EQ(boots_, 1);
  EXPECT_EQ(Count("warm_taken"), 1U);
  EXPECT_THAT(Waiting(), IsEmpty());
  EXPECT_TRUE(Exists(base() + "/pod/vm/console"));
  EXPECT_TRUE((*machine)->Call(protocol::Pause{.container = "c"}, Soon()));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, WhereNoneWaitsOneIsRestored) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  auto first = Start("first");
  auto second = Start("second");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(restores_, 2);
  EXPECT_EQ(boots_, 1);
  EXPECT_THAT(context_.Tags(), testing::ElementsAre("vsock", "vmm"));
  EXPECT_TRUE((*first)->Shutdown(std::chrono::milliseconds(0)));
  EXPECT_TRUE((*second)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, OneThatIsOfAnotherShapeIsBooted) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  MachineRequest request = Request();
  request.options.cmdline = "loglevel=7";
  auto machine = Start(std::move(request));
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(boots_, 2);
  EXPECT_THAT(context_.log, Contains(HasSubstr("another VMM, image or size")));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, OneThatCannotBeRestoredIsBooted) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  auto waited = Start("waited");
  ASSERT_TRUE(waited);
  fails_to_restore_ = true;
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(boots_, 2);
  EXPECT_THAT(context_.log, Contains(HasSubstr("it is booted: ")));
  EXPECT_THAT(context_.log, Contains(HasSubstr("load the state")));
  EXPECT_TRUE((*waited)->Shutdown(std::chrono::milliseconds(0)));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, OneThatCannotBeMadeThePodsIsReplaced) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  fails_to_add_ = true;
  MachineRequest request = Request();
  request.nics.push_back({.id = "eth0", .mac = "02:00:00:00:00:01"});
  auto machine = Start(std::move(request));
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_THAT(context_.log, Contains(HasSubstr("of no use")));
  EXPECT_EQ(boots_, 2);
  EXPECT_EQ(maker_.Alive(), 0U);
  EXPECT_EQ(Count("warm_failed"), 1U);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, ATemplateThatCannotBeRestoredIsMadeAnew) {
  fails_to_restore_ = true;
  MakePool({.quiet = std::chrono::milliseconds(0), .first_pause = std::chrono::milliseconds(1)});
  ASSERT_TRUE(AwaitCount("warm_failed", 1));
  fails_to_restore_ = false;
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  EXPECT_GE(snapshots_, 2);
  EXPECT_THAT(Templates(), SizeIs(1));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, AGuestThatIsNeverReadyLeavesNothing) {
  script_ = "echo no >>$CONSOLE; exit 3";
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_failed", 1));
  EXPECT_THAT(Templates(), IsEmpty());
  EXPECT_TRUE(maker_.WaitForLog("make a template"));
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, OneThatTheMemoryHasNoRoomForIsNoneAndLeavesNothing) {
  snapshots_are_too_large_ = true;
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_failed", 1));
  EXPECT_TRUE(maker_.WaitForLog("ENOSPC"));
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_TRUE(context_.WaitForLog("it is booted"));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  LetPoolGo();
  EXPECT_THAT(Templates(), IsEmpty());
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, TemplatesOfAnotherKeyGo) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  const auto before = Templates();
  LetPoolGo();
  ASSERT_EQ(Templates(), before) << "they outlive an engine";
  ASSERT_TRUE(WriteFile(means_.images + "/initrd", "another one", 0644));
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  ASSERT_THAT(Templates(), SizeIs(1));
  EXPECT_NE(Templates(), before);
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, TheNextEngineNeedsNoBoot) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  LetPoolGo();
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  EXPECT_EQ(boots_, 1);
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, WhatAnEngineThatWasKilledHasLeftGoes) {
  const std::string left = base() + "/ready-abcdef";
  ASSERT_TRUE(MakeSandboxDirectory(left));
  ASSERT_TRUE(MachineDirectory(left).Make({}, false));
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  EXPECT_FALSE(Exists(left));
  EXPECT_THAT(Waiting(), SizeIs(1)) << "its own stays";
  ExpectNothingIsLeft();
}

TEST_F(ReadyPoolTest, TheNextEngineFindsAMachineThatHadWaited) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  auto machine = Start();
  ASSERT_TRUE(machine);
  const std::string blob = (*machine)->Save();
  const auto process = (*machine)->process();
  machine->reset();
  LetPoolGo();
  // The fake knows what it has spawned itself.
  auto found = Machine::Recover(maker_, means_, Request(), blob, {});
  ASSERT_TRUE(found) << found.error().message;
  // That its agent dials again, the test with a guest shows: a double does not know the new place.
  EXPECT_EQ((*found)->process()->pid(), process->pid());
  EXPECT_FALSE((*found)->ended());
  EXPECT_TRUE((*found)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

// Between the pool's record and the pod's there is none: the directory has what is left, whichever
// of the two it is by then.
TEST_F(ReadyPoolTest, OneWhoseEngineDiedWhileItWasTakenIsEnded) {
  for (const bool is_the_pods : {false, true}) {
    SCOPED_TRACE(is_the_pods ? "in the pod's place" : "in its own");
    MakePool();
    ASSERT_TRUE(AwaitCount("warm_ready", 1));
    MachineRequest request = Request();
    ASSERT_TRUE(Settle(means_, request, Soon()));
    auto taken = pool_->Take(context_, request, Accelerator::kTcg, Soon());
    ASSERT_TRUE(taken) << taken.error().message;
    const std::string ready = taken->directory.sandbox();
    if (is_the_pods) {
      ASSERT_TRUE(GiveUser(options_, ready, request.directory, *taken->user.uid));
      ASSERT_TRUE(MachineDirectory(request.directory).TakeFrom(taken->directory, taken->user));
      const auto found = Machine::Recover(context_, means_, Request(), "", {});
      ASSERT_FALSE(found);
      EXPECT_EQ(found.error().code, Code::kNotFound) << found.error().message;
      EXPECT_FALSE(Exists(request.directory));
    } else {
      EXPECT_FALSE(Exists(ready + "/pool"));
      RemoveLeftReadyVms(base());
      EXPECT_FALSE(Exists(ready));
    }
    EXPECT_TRUE(taken->vmm->Wait(std::chrono::seconds(20))) << "the VMM runs on";
    EXPECT_TRUE(taken->vsock->Wait(std::chrono::seconds(20))) << "the vsock device runs on";
    IgnoreError(EndReadyVm(options_, *taken), "the directory is gone");
    // Where its sandbox is gone it is free for others, though its link is there.
    FreeUser(options_, request.directory, *taken->user.uid);
    ExpectNothingIsLeft();
  }
}

TEST_F(ReadyPoolTest, LeavingEndsAllThatWait) {
  MakePool();
  ASSERT_TRUE(AwaitCount("warm_ready", 1));
  pool_->Leave();
  EXPECT_THAT(Waiting(), IsEmpty());
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gantry::vmm
