// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/ready_pool.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/context/lent_context.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/vm_end.h"
#include "plugins/vmm/machine/config.h"
#include "plugins/vmm/machine/programs.h"
#include "plugins/vmm/template/make_template.h"
#include "plugins/vmm/template/restore_vm.h"
#include "plugins/vmm/template/template_key.h"
#include "plugins/vmm/template/template_store.h"

namespace gantry::vmm {
namespace {

constexpr const char* kReadyPrefix = "ready-";
constexpr const char* kPoolLink = "/pool";
constexpr size_t kNameBytes = 12;
/// A canary that runs is waited for.
constexpr std::chrono::minutes kSettle{2};
/// A healthy one takes a third of a second, also translated; a node may be very busy.
constexpr std::chrono::seconds kRestore{40};

Deadline In(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// What is spawned is the backend's own; of it the pool knows the VMM.
class MakersContext : public LentContext {
 public:
  MakersContext(SandboxContext& host, const PoolMaker::Spawned& spawned)
      : LentContext(host, "template"), spawned_(spawned) {}

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    const bool is_vmm = request.tag == kVmmTag;
    GANTRY_TRY(auto process, LentContext::Spawn(std::move(request)));
    if (is_vmm) {
      spawned_(process);
    }
    return process;
  }

 private:
  const PoolMaker::Spawned& spawned_;
};

/// One that waits. Where nobody has taken it nothing of it is left.
struct WaitingVm : PooledProcess {
  WaitingVm() = default;
  WaitingVm(const WaitingVm&) = delete;
  WaitingVm& operator=(const WaitingVm&) = delete;

  ~WaitingVm() override {
    if (vm.vmm) {
      IgnoreError(RemoveFile(vm.directory.sandbox() + kPoolLink), "it is looked for later");
      IgnoreError(EndReadyVm(options, vm), "the next engine looks for what is left");
    }
  }

  std::string LastWords() const override { return ConsoleTailOf(vm.directory.console()); }

  VmmOptions options;
  ReadyVm vm;
};

/// As for a pod without limits.
MachineRequest RequestFor(const TemplateHandler& handler) {
  MachineRequest request;
  request.id = "ready-" + handler.name;
  request.options = handler.options;
  request.size = StartSize(handler.options, SizeOfNode(), {});
  request.directory =
      Format("{}/{}{}", handler.options.directory, kReadyPrefix, RandomName(kNameBytes));
  return request;
}

Status LinkTo(const std::string& folder, const std::string& directory) {
  GANTRY_CHECK_OK(MakeSandboxDirectory(directory));
  const std::string link = directory + kPoolLink;
  if (symlink(folder.c_str(), link.c_str()) != 0) {
    return FailErrno(errno, "make '{}'", link);
  }
  return {};
}

/// What runs in it neither the pool's folder nor a pod's record may name: an engine can be killed
/// between the two.
Status RemoveReady(const std::string& directory) {
  GANTRY_CHECK_OK(MachineDirectory(directory).EndNoted());
  GANTRY_CHECK_OK(MachineDirectory(directory).Remove());
  return RemoveTree(directory);
}

}  // namespace

void RemoveLeftReadyVms(const std::string& directory) {
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    const std::string path = Format("{}/{}", directory, name);
    if (!name.starts_with(kReadyPrefix)) {
      continue;
    }
    const std::string entry = ReadLink(path + kPoolLink).value_or(std::string());
    if (entry.empty() || !Exists(entry)) {
      IgnoreError(RemoveReady(path), "the next engine tries again");
    }
  }
}

void RemoveTemplates(const std::string& directory) {
  const TemplateStore store(directory);
  if (!Exists(store.folder())) {
    return;
  }
  if (const auto lock = store.Lock()) {
    IgnoreError(store.RemoveOthers({}), "the next engine tries again");
  }
}

ReadyPool::ReadyPool(SandboxContext& context, const MachineMeans& means,
                     std::vector<TemplateHandler> handlers, PoolTimes times)
    : context_(context), means_(means), handlers_(std::move(handlers)) {
  std::vector<PoolHandler> pooled;
  pooled.reserve(handlers_.size());
  for (const TemplateHandler& handler : handlers_) {
    // Before the pool makes a folder there, which nobody else may pass.
    IgnoreError(TemplateStore(handler.options.directory).MakeFolder(), "who makes one says why");
    pooled.push_back({handler.name, handler.options.templates, handler.options.directory});
  }
  PoolMaker maker;
  maker.make = [this](size_t handler, const std::string& folder,
                      const PoolMaker::Spawned& spawned) { return Make(handler, folder, spawned); };
  maker.build = [this](size_t handler) { return Build(handler); };
  pool_ = std::make_unique<ProcessPool>(context, std::move(pooled), std::move(maker), times);
}

std::shared_ptr<void> ReadyPool::Starting() {
  return std::make_shared<ProcessPool::Starting>(pool_.get());
}

void ReadyPool::Report(const std::string& handler, bool of_use) {
  ProcessPool::Starting(pool_.get()).Report(handler, of_use);
}

Result<std::string> ReadyPool::Build(size_t handler) const {
  MachineRequest request = RequestFor(handlers_.at(handler));
  GANTRY_TRY(const Accelerator accelerator, Settle(means_, request, In({})));
  return TemplateKey(request, accelerator);
}

Result<std::vector<std::string>> ReadyPool::KeysIn(const std::string& directory) const {
  std::vector<std::string> keys;
  for (size_t i = 0; i < handlers_.size(); ++i) {
    if (handlers_[i].options.directory == directory) {
      GANTRY_TRY(std::string key, Build(i));
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

Result<std::string> ReadyPool::TemplateFor(SandboxContext& context, const MachineRequest& request,
                                           Accelerator accelerator, const std::string& key) {
  const TemplateStore store(request.options.directory);
  if (auto found = store.Find(key)) {
    return std::move(*found);
  }
  GANTRY_TRY(const UniqueFd lock, store.Lock());
  if (const auto keys = KeysIn(request.options.directory)) {
    IgnoreError(store.RemoveOthers(*keys), "they are removed with the next one");
  }
  const auto begin = std::chrono::steady_clock::now();
  GANTRY_TRY(std::string made, MakeTemplate(context, means_, request, accelerator, store, key));
  const auto took = std::chrono::steady_clock::now() - begin;
  context_.Log(LogLevel::kInfo,
               Format("{}: a template has been made in {} ms, '{}'", request.id,
                      std::chrono::duration_cast<std::chrono::milliseconds>(took).count(), made));
  return made;
}

Result<std::unique_ptr<PooledProcess>> ReadyPool::Make(size_t handler, const std::string& folder,
                                                       const PoolMaker::Spawned& spawned) {
  MachineRequest request = RequestFor(handlers_.at(handler));
  if (swept_.insert(request.options.directory).second) {
    RemoveLeftReadyVms(request.options.directory);
  }
  GANTRY_TRY(const Accelerator accelerator, Settle(means_, request, In(kSettle)));
  GANTRY_TRY(std::string key, TemplateKey(request, accelerator));
  MakersContext lent(context_, spawned);
  GANTRY_CHECK_OK(LinkTo(folder, request.directory));
  auto waiting = std::make_unique<WaitingVm>();
  const TemplateStore store(request.options.directory);
  auto made = [&]() -> Result<ReadyVm> {
    GANTRY_TRY(const std::string snapshot, TemplateFor(lent, request, accelerator, key));
    auto vm = RestoreVm(lent, means_, request, accelerator, snapshot, In(kRestore));
    if (!vm) {
      // The next one is restored from another.
      IgnoreError(store.Remove(key), "it fails again then");
    }
    return vm;
  }();
  if (!made) {
    IgnoreError(RemoveReady(request.directory), "the next engine looks for what is left");
    return std::unexpected(std::move(made).error());
  }
  waiting->vm = std::move(*made);
  waiting->options = request.options;
  waiting->process = waiting->vm.vmm;
  waiting->folder = folder;
  waiting->build = std::move(key);
  return waiting;
}

Result<ReadyVm> ReadyPool::Take(SandboxContext& context, const MachineRequest& request,
                                Accelerator accelerator, Deadline deadline) {
  GANTRY_TRY(const std::string key, TemplateKey(request, accelerator));
  ProcessPool::Starting starting(pool_.get());
  const ProcessPool::Taken taken = starting.Take([&](const PooledProcess& one) -> std::string_view {
    return one.build == key ? "" : "those that wait are of another VMM, image or size";
  });
  if (taken.process) {
    auto& waiting = static_cast<WaitingVm&>(*taken.process);
    GANTRY_CHECK_OK(HandOver(waiting));
    IgnoreError(RemoveFile(waiting.vm.directory.sandbox() + kPoolLink), "it is looked for later");
    IgnoreError(RemoveTree(waiting.folder), "it goes with the others'");
    ReadyVm vm = std::exchange(waiting.vm, ReadyVm());
    vm.handler = taken.handler;
    return vm;
  }
  const auto snapshot = TemplateStore(request.options.directory).Find(key);
  if (!snapshot) {
    return Fail(Code::kNotFound, "{}, and there is no template", taken.missing);
  }
  auto restored =
      RestoreVm(context, means_, request, accelerator, *snapshot, std::min(deadline, In(kRestore)));
  if (!restored && restored.error().code == Code::kNotFound) {
    restored.error().code = Code::kInternal;
  }
  return restored;
}

void ReadyPool::Leave() {
  pool_->Leave();
  for (const TemplateHandler& handler : handlers_) {
    RemoveLeftReadyVms(handler.options.directory);
  }
}

}  // namespace gantry::vmm
