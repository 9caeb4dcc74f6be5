// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/template/ready_rig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/error.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>

#include "plugins/vmm/machine/directory.h"
#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/template/template_store.h"

namespace gantry::vmm {

Result<SpawnRequest> TemplateVm::Describe() {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", rig_.script_};
  request.env = {"PATH=/usr/bin:/bin", "CONSOLE=" + config_.console};
  return request;
}

Status TemplateVm::Boot(Deadline) {
  ++rig_.boots_;
  if (config_.vsock) {
    rig_.Dial(config_.console);
  }
  return {};
}

Status TemplateVm::Restore(Deadline) {
  ++rig_.restores_;
  const auto state = ReadFile(config_.from->directory + "/state", 64);
  if (rig_.fails_to_restore_ || !state || *state != "state") {
    return Fail(Code::kInternal, "load the state: it is none");
  }
  rig_.Dial(config_.console);
  return {};
}

Status TemplateVm::Resume(Deadline) { return {}; }

Status TemplateVm::AddNic(const Nic&, Deadline) {
  return rig_.fails_to_add_ ? Status(Fail(Code::kInternal, "add an interface: refused")) : Status();
}

Status TemplateVm::TakeSnapshot(const Snapshot& snapshot, Deadline) {
  ++rig_.snapshots_;
  if (rig_.snapshots_are_too_large_) {
    const std::string memory = snapshot.directory + "/memory";
    const UniqueFd file(open(memory.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    constexpr off_t kTooMuch = off_t{1} << 40;
    if (fallocate(file.get(), 0, 0, kTooMuch) != 0) {
      return FailErrno(errno, "write '{}'", memory);
    }
  }
  return WriteFile(snapshot.directory + "/state", "state", 0600);
}

// The VMs' users have to get there, as to /run.
ReadyRig::ReadyRig() {
  EXPECT_EQ(chmod(folder_.path().c_str(), 0711), 0);
  const std::string images = folder_.path() + "/image";
  EXPECT_EQ(mkdir(images.c_str(), 0755), 0);
  EXPECT_TRUE(WriteFile(images + "/kernel", "k", 0644));
  EXPECT_TRUE(WriteFile(images + "/initrd", "i", 0644));
  EXPECT_TRUE(WriteFile(images + "/vmm", "v", 0755));
  means_.images = images;
  means_.open_program = [](std::string_view) -> Result<UniqueFd> {
    return UniqueFd(open(GANTRY_VSOCK, O_RDONLY | O_CLOEXEC));
  };
  means_.accelerator = [](const VmmOptions&, Deadline) -> Result<Accelerator> {
    return Accelerator::kTcg;
  };
  means_.make_hypervisor = [this](VmConfig config, const HypervisorRequest&) {
    return Result<std::unique_ptr<Hypervisor>>(
        std::make_unique<TemplateVm>(*this, std::move(config)));
  };
  options_.vmm_path = images + "/vmm";
  options_.directory = base();
  options_.users = 100;
  options_.templates = 1;
}

ReadyRig::~ReadyRig() { LetPoolGo(); }

void ReadyRig::SetUp() {
  if (geteuid() != 0) {
    GTEST_SKIP() << "whoever gives processes users of their own is root";
  }
}

void ReadyRig::MakePool(PoolTimes times) {
  pool_ = std::make_unique<ReadyPool>(
      maker_, means_, std::vector<TemplateHandler>{{.name = "vmm", .options = options_}}, times);
  means_.ready_vms = pool_.get();
}

void ReadyRig::LetPoolGo() {
  means_.ready_vms = nullptr;
  pool_.reset();
}

uint64_t ReadyRig::Count(const std::string& name) const {
  const auto counts = pool_->Counts();
  const auto found = std::ranges::find(counts, name, &BackendCount::name);
  return found == counts.end() ? 0 : found->value;
}

bool ReadyRig::AwaitCount(const std::string& name, uint64_t value) {
  return pool_->pool_for_test().AwaitForTest(
      [&](const auto& counts) {
        const auto found = std::ranges::find(counts, name, &BackendCount::name);
        return found != counts.end() && found->value >= value;
      },
      std::chrono::seconds(60));
}

MachineRequest ReadyRig::Request(const std::string& name) const {
  MachineRequest request;
  request.id = name;
  request.directory = base() + "/" + name;
  request.options = options_;
  request.size = StartSize(options_, SizeOfNode(), {});
  request.set_up.hostname = name;
  return request;
}

Result<std::unique_ptr<Machine>> ReadyRig::Start(const std::string& name) {
  return Start(Request(name));
}

Result<std::unique_ptr<Machine>> ReadyRig::Start(MachineRequest request) {
  return Machine::Start(context_, means_, std::move(request), {}, Soon());
}

std::vector<std::string> ReadyRig::Templates() const {
  return ListDirectory(TemplateStore(base()).folder()).value_or(std::vector<std::string>());
}

std::vector<std::string> ReadyRig::Waiting() const {
  auto names = ListDirectory(base()).value_or(std::vector<std::string>());
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("ready-"); });
  return names;
}

void ReadyRig::ExpectNothingIsLeft() {
  LetPoolGo();
  RemoveTemplates(base());
  EXPECT_EQ(maker_.Alive() + context_.Alive(), 0U);
  const auto mounts = mount::ListMounts(folder_.path());
  ASSERT_TRUE(mounts);
  EXPECT_TRUE(mounts->empty()) << mounts->front().path;
  EXPECT_TRUE(Waiting().empty());
  EXPECT_TRUE(ListDirectory(base() + "/users")->empty()) << "a user is left";
}

/// `console` is a file beside the sockets.
void ReadyRig::Dial(const std::string& console) {
  const std::string vm = console.substr(0, console.rfind('/'));
  const std::lock_guard lock(mutex_);
  agents_.push_back(std::make_unique<AgentDouble>(
      MachineDirectory(vm.substr(0, vm.rfind('/'))).port(protocol::kControlPort)));
}

}  // namespace gantry::vmm
