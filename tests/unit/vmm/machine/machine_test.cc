// SPDX-License-Identifier: Apache-2.0
//
// How a machine is started, and what its start fails of. Its end: machine_end_test.cc.
#include "plugins/vmm/machine/machine.h"

#include <signal.h>
#include <sys/stat.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/protocol/reports.h"
#include "tests/unit/vmm/machine/machine_rig.h"

namespace gantry::vmm {
namespace {

using protocol::Kind;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class MachineStart : public MachineRig {};

std::string StatusOf(const HostProcess& process) {
  return ReadFile(Format("/proc/{}/status", process.pid().value), 1 << 16).value_or("");
}

TEST_F(MachineStart, SetsTheGuestUpAndIsRemovedWithoutATrace) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_THAT(context_.Tags(), ElementsAre("vsock", "vmm"));
  EXPECT_EQ((*machine)->agent(), "agent-double 1 in Linux 6.1-test");
  const auto asked = agent_->Asked(Kind::kSetUp);
  ASSERT_TRUE(asked);
  const auto set_up = DecodeProto<protocol::SetUp>(asked->body);
  EXPECT_EQ(set_up->hostname, "pod");
  EXPECT_EQ(set_up->entropy.size(), 64U);
  ASSERT_TRUE(set_up->clock);
  EXPECT_TRUE(set_up->clock->step);
  EXPECT_TRUE(Ping(**machine, Soon()));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
  EXPECT_EQ(ends(), 0U) << "who asks for it is not told";
}

TEST_F(MachineStart, ItsProgramsHaveNoRightsAndAUserOfTheirOwn) {
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  const std::string vmm = StatusOf(*context_.SpawnedUnder("vmm"));
  const std::string vsock = StatusOf(*context_.SpawnedUnder("vsock"));
  for (const std::string& status : {vmm, vsock}) {
    EXPECT_THAT(status, Not(HasSubstr("Uid:\t0")));
    EXPECT_THAT(status, AllOf(HasSubstr("CapEff:\t0000000000000000"), HasSubstr("NoNewPrivs:\t1")));
  }
  EXPECT_EQ((*machine)->process(), context_.SpawnedUnder("vmm"));
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
}

TEST_F(MachineStart, TheVmIsDescribedAsTheOptionsSay) {
  MachineRequest request = Request();
  request.id = "k8s.io/pod_1";
  request.options.cmdline = "gantry.test=1";
  request.size = {
      .cpus = 2, .max_cpus = 8, .memory_bytes = 128 * kMiB, .max_memory_bytes = 512 * kMiB};
  request.disks = {{.serial = "d1", .path = "/dev/null"}};
  agent_ = std::make_unique<AgentDouble>(sandbox() + "/vm/s/v_1025");
  auto machine = Start(std::move(request));
  ASSERT_TRUE(machine) << machine.error().message;
  const VmConfig& config = vm_->config;
  EXPECT_EQ(config.id, "k8s-io-pod-1");
  EXPECT_TRUE(CheckVmConfig(config));
  EXPECT_THAT(config.cmdline, AllOf(HasSubstr("mitigations=off"), HasSubstr("gantry.test=1")));
  EXPECT_EQ(config.cpus.max, 2U) << "guests that are translated take no CPUs later";
  EXPECT_EQ(config.memory.max_bytes, 512 * kMiB);
  EXPECT_EQ(config.disks.at(0).serial, "d1");
  EXPECT_EQ(config.kernel, means_.images + "/kernel");
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
}

TEST_F(MachineStart, TheVmmMayConnectToItsFileSystems) {
  ASSERT_TRUE(MakeSandboxDirectory(sandbox()));
  const std::string socket = sandbox() + "/virtiofsd";
  const auto listener = ListenUnix(socket);
  ASSERT_TRUE(listener);
  MachineRequest request = Request();
  request.file_systems = {{.tag = "files", .socket = socket}};
  agent_ = std::make_unique<AgentDouble>(sandbox() + "/vm/s/v_1025");
  auto machine = Start(std::move(request));
  ASSERT_TRUE(machine) << machine.error().message;
  struct stat info{};
  ASSERT_EQ(stat(socket.c_str(), &info), 0);
  EXPECT_THAT(StatusOf(*(*machine)->process()), HasSubstr(Format("Uid:\t{}\t", info.st_uid)));
  EXPECT_NE(info.st_uid, 0U);
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
}

TEST_F(MachineStart, FailsBeforeAnythingIsThereWithoutAKernel) {
  MachineRequest request = Request();
  request.options.kernel = "/no/such/kernel";
  const auto machine = Start(std::move(request));
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(machine.error().message, AllOf(HasSubstr("/no/such/kernel"), HasSubstr("'kernel'")));
  EXPECT_TRUE(context_.asked.empty());
  EXPECT_FALSE(Exists(sandbox()));
}

TEST_F(MachineStart, TellsWhatTheVmmAndTheConsoleSaidLast) {
  script_ =
      "echo 'Kernel panic - not syncing: no init' > $CONSOLE; echo 'no such drive' >&2; exit 1";
  const auto machine = Start(Request());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(machine.error().message,
              AllOf(HasSubstr("status 1"), HasSubstr("not syncing: no init"),
                    HasSubstr("QEMU said: no such drive")));
  ExpectNothingIsLeft();
}

TEST_F(MachineStart, GivesAGuestThatSaysNothingNoMoreThanItsTime) {
  script_ = "echo 'still loading' > $CONSOLE; exec sleep 1000";
  MachineRequest request = Request();
  request.options.boot_timeout = std::chrono::milliseconds(300);
  const auto machine = Start(std::move(request));
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(machine.error().message, HasSubstr("hello"));
  ExpectNothingIsLeft();
}

TEST_F(MachineStart, RefusesAnAgentOfAnotherVersion) {
  agent_ = std::make_unique<AgentDouble>(sandbox() + "/vm/s/v_1025", 9);
  const auto machine = Start(Request());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(machine.error().message, HasSubstr("9"));
  ExpectNothingIsLeft();
}

TEST_F(MachineStart, WhatAVmmHasNotIsNoOldApi) {
  means_.make_hypervisor = [](VmConfig, const HypervisorRequest&) {
    return Result<std::unique_ptr<Hypervisor>>(
        Unsupported(Vmm::kFirecracker, "share", "use disks"));
  };
  const auto machine = Start(Request());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kFailedPrecondition)
      << "containerd takes UNIMPLEMENTED of Create for an older API";
  ExpectNothingIsLeft();
}

TEST_F(MachineStart, ASpawnThatFailsLeavesNothing) {
  context_.on_spawn = [](const SpawnRequest& request) -> Status {
    return request.tag == "vmm" ? Fail(Code::kResourceExhausted, "no memory") : Status();
  };
  const auto machine = Start(Request());
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kResourceExhausted);
  ExpectNothingIsLeft();
}

TEST_F(MachineStart, WhatAnEngineThatWasKilledLeftIsInNobodysWay) {
  ASSERT_TRUE(MakeSandboxDirectory(sandbox()));
  ASSERT_TRUE(MachineDirectory(sandbox()).Make({}, false));
  auto machine = Start();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_TRUE((*machine)->Shutdown(std::chrono::milliseconds(0)));
  ExpectNothingIsLeft();
}

}  // namespace
}  // namespace gantry::vmm
