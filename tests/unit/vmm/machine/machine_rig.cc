// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/machine/machine_rig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/machine/directory.h"

namespace gantry::vmm {

Result<SpawnRequest> ShellVm::Describe() {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script_};
  request.env = {"PATH=/usr/bin:/bin", "CONSOLE=" + config.console};
  return request;
}

// The VMs' users have to get there, as to /run.
MachineRig::MachineRig() {
  EXPECT_EQ(chmod(folder_.path().c_str(), 0711), 0);
  const std::string images = folder_.path() + "/image";
  EXPECT_EQ(mkdir(images.c_str(), 0755), 0);
  EXPECT_TRUE(WriteFile(images + "/kernel", "k", 0644));
  EXPECT_TRUE(WriteFile(images + "/initrd", "i", 0644));
  means_.images = images;
  means_.open_program = [](std::string_view name) -> Result<UniqueFd> {
    EXPECT_EQ(name, "gantry-vsock");
    return UniqueFd(open(GANTRY_VSOCK, O_RDONLY | O_CLOEXEC));
  };
  means_.accelerator = [](const VmmOptions&, Deadline) -> Result<Accelerator> {
    return Accelerator::kTcg;
  };
  means_.make_hypervisor = [this](VmConfig config, const HypervisorRequest&) {
    auto vm = std::make_unique<ShellVm>(std::move(config), script_);
    vm_ = vm.get();
    return Result<std::unique_ptr<Hypervisor>>(std::move(vm));
  };
}

MachineRig::~MachineRig() {
  // Where a test failed.
  IgnoreError(mount::UnmountTree(sandbox() + "/vm"), "it is not mounted, mostly");
}

void MachineRig::SetUp() {
  if (geteuid() != 0) {
    GTEST_SKIP() << "whoever gives processes users of their own is root";
  }
}

MachineRequest MachineRig::Request() const {
  MachineRequest request;
  request.id = "pod-1";
  request.directory = sandbox();
  request.options.directory = base();
  request.options.users = 100;
  request.options.boot_timeout = std::chrono::seconds(60);
  request.set_up.hostname = "pod";
  return request;
}

Result<std::unique_ptr<Machine>> MachineRig::Start() {
  agent_ = std::make_unique<AgentDouble>(sandbox() + "/vm/s/v_1025");
  return Start(Request());
}

Result<std::unique_ptr<Machine>> MachineRig::Start(MachineRequest request, Deadline deadline) {
  return Machine::Start(context_, means_, std::move(request), Events(), deadline);
}

Result<std::unique_ptr<Machine>> MachineRig::Recover(const std::string& blob) {
  context_.RestartEngine();
  return Machine::Recover(context_, means_, Request(), blob, Events());
}

Result<std::string> MachineRig::Ping(Machine& machine, Deadline deadline) {
  return machine.Ask(protocol::Kind::kPause, EncodeProto(protocol::Pause{.container = "c"}),
                     deadline);
}

MachineEvents MachineRig::Events() {
  MachineEvents events;
  events.ended = [this](const Error& why) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(why.message);
    changed_.notify_all();
  };
  events.reconnected = [this] {
    const std::lock_guard lock(mutex_);
    ++reconnects_;
    changed_.notify_all();
  };
  events.exited = [this](const AgentExit& exit) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(ends_.empty()) << "nothing comes behind the end";
    exits_.push_back(exit);
    changed_.notify_all();
  };
  return events;
}

std::string MachineRig::WaitForEnd() {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return !ends_.empty(); }));
  return ends_.empty() ? std::string() : ends_.front();
}

void MachineRig::WaitForReconnects(size_t count) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return reconnects_ >= count; }));
}

std::vector<AgentExit> MachineRig::WaitForExits(size_t count) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return exits_.size() >= count; }));
  return exits_;
}

size_t MachineRig::ends() {
  const std::lock_guard lock(mutex_);
  return ends_.size();
}

void MachineRig::ExpectNothingIsLeft() const {
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_FALSE(mount::IsMountPoint(sandbox() + "/vm").value_or(true));
  EXPECT_FALSE(Exists(sandbox()));
  const auto users = ListDirectory(base() + "/users");
  EXPECT_TRUE(users && users->empty()) << "a user is left";
}

}  // namespace gantry::vmm
