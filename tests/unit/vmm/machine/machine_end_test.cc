// SPDX-License-Identifier: Apache-2.0
//
// The end of a machine, what the next engine finds of it, and how it is shut down.
#include <signal.h>

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/machine/machine.h"
#include "plugins/vmm/protocol/reports.h"
#include "tests/unit/vmm/machine/machine_rig.h"

namespace gantry::vmm {
namespace {

using protocol::Kind;
using testing::AllOf;
using testing::HasSubstr;

class MachineEnd : public MachineRig {};

class MachineRecovery : public MachineRig {};

class MachineShutdown : public MachineRig {};

std::string AnExit(const std::string& container) {
  return EncodeProto(protocol::Exited{.container = container, .status = 7});
}

TEST_F(MachineEnd, OfTheVmmIsToldWithTheConsolesLastWords) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_TRUE(WriteExisting(console(), "BUG: unable to handle page fault\n"));
  ASSERT_TRUE((*machine)->process()->Signal(SIGKILL));
  EXPECT_THAT(WaitForEnd(), AllOf(HasSubstr("signal 9"), HasSubstr("page fault")));
  EXPECT_EQ(context_.Alive(), 0U) << "its vsock device goes with it";
  EXPECT_TRUE((*machine)->ended());
  const auto answer = Ping(**machine, Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(5)));
  ExpectNothingIsLeft();
  EXPECT_EQ(ends(), 1U);
}

TEST_F(MachineEnd, OfTheVsockDeviceIsTheMachines) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_TRUE(context_.SpawnedUnder("vsock")->Signal(SIGKILL));
  EXPECT_THAT(WaitForEnd(), AllOf(HasSubstr("vsock"), HasSubstr("signal 9")));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(MachineEnd, ComesBehindWhatTheAgentToldBefore) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_TRUE(agent_->Tell(Kind::kExited, AnExit("c1")));
  // The guest's last words are in the socket; it goes with its VMM.
  ASSERT_TRUE((*machine)->process()->Signal(SIGKILL));
  agent_->Hangup(false);
  WaitForEnd();
  EXPECT_EQ(WaitForExits(1).at(0).container, "c1");
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
}

TEST_F(MachineEnd, EndsACallThatWaits) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  agent_->BeSilent();
  auto call = std::async(std::launch::async, [&] { return Ping(**machine, Soon()); });
  ASSERT_TRUE(agent_->Asked(Kind::kPause));
  ASSERT_TRUE((*machine)->process()->Signal(SIGKILL));
  agent_->Hangup(false);
  const auto answer = call.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
}

TEST_F(MachineEnd, AnAgentThatDialsAgainIsNone) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  for (size_t i = 1; i <= 5; ++i) {
    agent_->Hangup(true);
    WaitForReconnects(i);
    EXPECT_TRUE(Ping(**machine, Soon()));
  }
  EXPECT_EQ(ends(), 0U);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
}

TEST_F(MachineEnd, ComesWhereTheAgentDoesNotDialAgain) {
  means_.redial_limit = std::chrono::milliseconds(50);
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  agent_->Hangup(false);
  EXPECT_THAT(WaitForEnd(), HasSubstr("has not dialled again"));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(MachineEnd, WhoIsNotTheAgentIsNobody) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const AgentDouble stranger(sandbox() + "/vm/s/v_1025");
  EXPECT_TRUE(context_.WaitForLog("not its agent"));
  EXPECT_TRUE(Ping(**machine, Soon()));
  EXPECT_EQ((*machine)->ended(), std::nullopt);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::seconds(0)));
}

TEST_F(MachineRecovery, FindsItAndTheAgentDialsAgain) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const std::string blob = (*machine)->Save();
  machine->reset();
  EXPECT_EQ(context_.Alive(), 2U) << "they are the next engine's";
  for (size_t i = 1; i <= 3; ++i) {
    auto again = Recover(blob);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->ended(), std::nullopt);
    EXPECT_EQ((*again)->Save(), blob);
    EXPECT_TRUE(Ping(**again, Soon())) << "it waits for the agent";
    WaitForReconnects(i);
  }
  auto last = Recover(blob);
  ASSERT_TRUE(last);
  ASSERT_TRUE((*last)->process()->Signal(SIGKILL));
  EXPECT_THAT(WaitForEnd(), HasSubstr("signal 9"));
  EXPECT_TRUE((*last)->Shutdown(std::chrono::seconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(MachineRecovery, TakesTheVmAsItWasStarted) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const std::string blob = (*machine)->Save();
  const std::string kernel = vm_->config.kernel;
  const uint32_t cpus = vm_->config.cpus.boot;
  machine->reset();
  ASSERT_TRUE(RemoveFile(means_.images + "/kernel")) << "the package was updated";
  auto again = Recover(blob);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(vm_->config.kernel, kernel);
  EXPECT_EQ(vm_->config.cpus.boot, cpus);
  EXPECT_TRUE((*again)->Shutdown(std::chrono::seconds(0)));
  ExpectNothingIsLeft();
}

TEST_F(MachineRecovery, OfAStartThatWasNeverFinishedLeavesNothing) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  machine->reset();
  const auto again = Recover("");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kNotFound);
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_FALSE(Exists(sandbox()));
}

TEST_F(MachineRecovery, OfWhatWasNeverThereSaysSo) {
  const auto again = Recover("");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kNotFound);
}

TEST_F(MachineRecovery, FindsTheEndThatCameMeanwhile) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const std::string blob = (*machine)->Save();
  const auto vmm = (*machine)->process();
  machine->reset();
  ASSERT_TRUE(vmm->Signal(SIGKILL));
  ASSERT_TRUE(vmm->Wait(std::chrono::seconds(30)));
  auto again = Recover(blob);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE((*again)->ended());
  EXPECT_THAT((*again)->ended()->message, HasSubstr("signal 9"));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_FALSE(Ping(**again, Soon()));
  EXPECT_EQ(ends(), 0U) << "it is asked for";
  EXPECT_TRUE((*again)->Shutdown(std::chrono::seconds(5)));
  ExpectNothingIsLeft();
}

TEST_F(MachineRecovery, AVmWhoseVsockDeviceWasKilledMeanwhileHasEnded) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const std::string blob = (*machine)->Save();
  machine->reset();
  const auto vsock = context_.SpawnedUnder("vsock");
  ASSERT_TRUE(vsock->Signal(SIGKILL));
  ASSERT_TRUE(vsock->Wait(std::chrono::seconds(30)));
  auto again = Recover(blob);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT((*again)->ended()->message, HasSubstr("vsock"));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_TRUE((*again)->Shutdown(std::chrono::seconds(5)));
}

TEST_F(MachineShutdown, AsksTheAgentFirst) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  auto down = std::async(std::launch::async,
                         [&] { return (*machine)->Shutdown(std::chrono::seconds(60)); });
  ASSERT_TRUE(agent_->Asked(Kind::kShutdown));
  ASSERT_TRUE(context_.SpawnedUnder("vmm")->Signal(SIGKILL)) << "as where the guest powers off";
  EXPECT_TRUE(down.get());
  ExpectNothingIsLeft();
}

TEST_F(MachineShutdown, TwoAtOnceAndOneAfterAreOne) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const auto down = [&] { return (*machine)->Shutdown(std::chrono::milliseconds(50)); };
  auto one = std::async(std::launch::async, down);
  auto other = std::async(std::launch::async, down);
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(down());
  ExpectNothingIsLeft();
  EXPECT_EQ(ends(), 0U);
}

TEST_F(MachineShutdown, LeavesWhatIsOthersInTheDirectory) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_TRUE(WriteFile(sandbox() + "/others", "", 0600));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  EXPECT_TRUE(Exists(sandbox() + "/others"));
  EXPECT_FALSE(Exists(sandbox() + "/vm"));
}

}  // namespace
}  // namespace gantry::vmm
