// SPDX-License-Identifier: Apache-2.0
//
// Taking up what an engine before this one left: for each instance that the
// keeper names, its record is read, its streams are taken out of the store, its
// sandbox and container are recovered by their backend, and ends that came
// meanwhile are handled (recovery_processes.cc). Containers of one pod one after
// the other, in the order in which they were announced; pods side by side. Calls
// to a container wait for this; calls to others do not.
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "core/log/log.h"
#include "core/task/backend_call.h"
#include "core/task/service.h"

namespace gantry::task {
namespace {

ContainerRequest RequestOf(const Container& container, std::string spec_json) {
  ContainerRequest request;
  request.id = container.id;
  request.bundle = container.bundle;
  request.spec_json = std::move(spec_json);
  request.rootfs = container.rootfs;
  request.terminal = container.init->stdio.terminal;
  request.checkpoint = container.checkpoint;
  request.options_json = container.options_json;
  return request;
}

/// What is short now, a descriptor or memory, may be there soon: others that are being
/// taken up need it for a moment.
constexpr auto kReadAgainAfter = std::chrono::milliseconds(50);
constexpr int kMostReads = 40;

/// The system could not read it; it may be as good as ever.
bool IsUnread(const Result<store::Record>& read) { return !read && read.error().sys_errno != 0; }

/// The record of a bundle, and nothing beside it: a write that was killed half-way
/// leaves no trace, one that is damaged is put aside. Thread: workers.
Result<store::Record> ReadRecord(const std::string& bundle) {
  store::RemoveUnfinished(bundle);
  Result<store::Record> read = store::Read(bundle);
  const Code code = read ? Code::kOk : read.error().code;
  // One of a later version is for that version, which may come back.
  if (!read && !IsUnread(read) && code != Code::kNotFound && code != Code::kFailedPrecondition) {
    IgnoreError(store::Quarantine(bundle), "it is logged and left where it is");
  }
  return read;
}

}  // namespace

/// What is stored for the processes of an instance that has gone while no engine
/// was there. (A sandbox outlives the instance that it is named after.)
void Service::DropOrphans() {
  std::erase_if(sandboxes_.stored(), [this](const std::string& name) {
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, number);
    const bool orphan = parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '/' &&
                        instances_.Find(number) == nullptr && SandboxPrefixOf(name).empty();
    if (orphan) {
      parts_.services.link.Drop(name);
    }
    return orphan;
  });
}

/// The same of sandboxes that no container uses, and their processes.
void Service::DropOrphanedSandboxes() {
  std::set<std::string> used = {""};
  for (const auto& [key, container] : containers_) {
    used.insert(container->sandbox_prefix);
  }
  pods_.AddPrefixes(used);
  sandboxes_.AbandonAllBut(used);
}

void Service::SnapshotEnd(std::vector<std::string> stored) {
  sandboxes_.SetStored(std::move(stored));
  DropOrphans();
  std::map<std::string, std::vector<uint64_t>> by_group;
  for (const auto& [number, instance] : instances_.all()) {
    const Result<GroupPtr> group = instances_.GroupAt(instance.address);
    const Result<ContainerId> id = ContainerId::Parse(instance.announce.id);
    if (instance.forgotten || !group || !id) {
      continue;
    }
    // Which of the two it is, its record tells.
    Enter(*id, *group);
    pods_.Expect(instance);
    by_group[instance.address].push_back(number);
  }
  os::Start(AwaitReplays());
  os::Start(RecoverAll(std::move(by_group)));
}

os::Task<void> Service::RecoverAll(std::map<std::string, std::vector<uint64_t>> by_group) {
  os::Scope groups;
  for (auto& [address, numbers] : by_group) {
    groups.Spawn(address, RecoverGroup(address, std::move(numbers)));
  }
  co_await groups.Join();
  DropOrphanedSandboxes();
}

os::Task<void> Service::RecoverGroup(std::string address, std::vector<uint64_t> numbers) {
  const os::OneShot<void> done = recovering_[address];
  for (const uint64_t number : numbers) {
    co_await RecoverInstance(number);
  }
  recovering_.erase(address);
  os::OneShot<void>(done).Set();
}

os::Task<void> Service::AwaitRecovery(std::string address) const {
  if (const auto found = recovering_.find(address); found != recovering_.end()) {
    const os::OneShot<void> done = found->second;
    co_await done.Wait();
  }
}

os::Task<void> Service::RecoverInstance(uint64_t number) {
  const link::InstanceAdded* const found = instances_.Find(number);
  if (found == nullptr) {
    co_return;
  }
  const link::InstanceAdded instance = *found;
  const Result<GroupPtr> group = instances_.GroupAt(instance.address);
  const ContainerPtr container = containers_[KeyOf(**group, instance.announce.id)];
  container->bundle = instance.announce.bundle;
  Result<store::Record> record = co_await ReadRecordOf(container);
  const bool is_pod = record && record->kind == store::Kind::kSandbox;
  co_await pods_.Recover(container->group, instance, is_pod ? &*record : nullptr);
  Status recovered;
  if (is_pod) {
    recovered = Fail(Code::kNotFound, "it is a pod");
  } else if (record) {
    recovered = co_await Recover(container, std::move(*record));
  } else {
    recovered = std::unexpected(record.error());
  }
  if (!recovered) {
    Leave(*container);
    if (recovered.error().code != Code::kNotFound) {
      LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recover: {}",
               recovered.error().message);
    }
  }
  container->ready.Set();
}

os::Task<Result<store::Record>> Service::ReadRecordOf(ContainerPtr container) {
  for (int reads = 1;; ++reads) {
    Result<store::Record> record = co_await parts_.services.pool.RunFor(
        container->group->account, [container] { return ReadRecord(container->bundle); },
        os::Refusable::kNo);
    if (!IsUnread(record) || record.error().code != Code::kResourceExhausted ||
        reads == kMostReads) {
      co_return record;
    }
    co_await os::Sleep(parts_.services.loop, kReadAgainAfter);
  }
}

os::Task<Status> Service::Recover(ContainerPtr container, store::Record record) {
  RestoreContainer(*container, record);
  const oci::Spec spec = co_await RereadSpec(container);
  if (const std::string& cgroup = record.blobs["cgroup"]; !cgroup.empty()) {
    if (Result<os::Cgroup> decoded = os::Cgroup::Decode(cgroup)) {
      OnCgroup(*container, std::move(*decoded));
    }
  }
  co_await RecoverSandbox(container, spec, record);
  co_await RecoverStreams(container->init);
  // Ends that are known while the rest is not yet are held back.
  container->init->start_pending = true;
  const Status found = co_await RecoverBackend(container, spec.json);
  if (record.state == State::kCreating) {
    left_streams_[KeyOf(*container->group, container->id.str())] =
        std::exchange(container->init->left_streams, {});
    co_await RollBack(container);
    co_return Fail(Code::kNotFound, "it had not been created");
  }
  if (!found) {
    LogError({{"id", container->id.str()}}, "its backend cannot recover it: {}",
             found.error().message);
    co_await AdoptByRecord(container->init);
  }
  for (const store::ExecRecord& exec : record.execs) {
    if (exec.state == State::kDeleting) {
      container->deleted_execs[exec.id] = exec.process;
    } else {
      co_await RecoverExec(container, exec);
    }
  }
  co_await SeeWhetherPaused(container);
  co_await SettleStarts(container);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recovered, {}",
          store::StateName(container->init->state));
  co_return Status();
}

/// An engine may have been killed between a pause and its record, and nobody ask again.
os::Task<void> Service::SeeWhetherPaused(ContainerPtr container) {
  State& state = container->init->state;
  if (state != State::kRunning || container->cgroup.empty()) {
    co_return;
  }
  const os::Cgroup cgroup = container->cgroup;
  const Result<bool> frozen = co_await parts_.services.pool.Run([&] { return cgroup.Frozen(); });
  if (frozen && *frozen && state == State::kRunning) {
    state = State::kPaused;
  }
}

void Service::RestoreContainer(Container& container, const store::Record& record) {
  container.handler = record.handler;
  container.backend_name = record.backend;
  container.state_dirs = record.state_dirs;
  container.sandbox_prefix = record.sandbox_prefix;
  container.options_json = record.options_json;
  container.mounts = record.mounts;
  container.annotations = record.annotations;
  container.checkpoint = record.checkpoint;
  container.created_at_ns = record.created_at_ns;
  if (const auto blob = record.blobs.find("container"); blob != record.blobs.end()) {
    container.blob = blob->second;
  }
  container.init = NewProcess(container, ExecId());
  Restore(*container.init, record.stdio, record.state, record.init);
  container.context =
      std::make_unique<ContainerContextImpl>(parts_, *this, container.weak_from_this());
}

/// The bundle's spec, or none where it cannot be read any more.
os::Task<oci::Spec> Service::RereadSpec(ContainerPtr container) {
  oci::Spec spec;
  Result<oci::Spec> read = co_await parts_.services.pool.Run([&]() -> Result<oci::Spec> {
    return oci::ReadSpec(container->bundle, parts_.config.limits.max_spec_bytes);
  });
  if (read) {
    spec = std::move(*read);
    container->private_pids = spec.has_private_pid_namespace();
  }
  container->rootfs =
      container->mounts.empty() ? spec.RootPath(container->bundle) : container->bundle + "/rootfs";
  co_return spec;
}

os::Task<void> Service::RecoverSandbox(ContainerPtr container, const oci::Spec& spec,
                                       const store::Record& record) {
  if (record.backend.empty()) {
    co_return;
  }
  if (pods_.Has(container->group->address)) {
    if (SandboxEntryPtr pod = sandboxes_.Find(container->group->address)) {
      JoinMembers(*container, std::move(pod));
    }
    co_return;
  }
  SandboxRequest request;
  request.kind = record.sandbox_id.empty() ? SandboxKind::kImplied : SandboxKind::kPaused;
  request.bundle = container->bundle;
  request.options_json = container->options_json;
  request.annotations = container->annotations;
  if (const oci::LinuxNamespace* net = spec.FindNamespace("network")) {
    request.netns_path = net->path;
  }
  const auto saved = record.blobs.find("sandbox");
  const std::string blob = saved == record.blobs.end() ? std::string() : saved->second;
  Result<SandboxEntryPtr> opened =
      co_await OpenSandbox(container, std::move(request), record.backend, &blob);
  if (opened) {
    JoinMembers(*container, std::move(*opened));
  } else {
    LogError({{"id", container->id.str()}}, "its sandbox cannot be recovered: {}",
             opened.error().message);
    sandboxes_.Abandon(container->sandbox_prefix);
  }
}

os::Task<Status> Service::RecoverBackend(ContainerPtr container, std::string spec_json) {
  const SandboxEntryPtr entry = container->sandbox;
  if (!entry) {
    co_return Fail(Code::kUnavailable, "it has no sandbox");
  }
  const ContainerRequest request = RequestOf(*container, std::move(spec_json));
  const std::string blob = container->blob;
  GANTRY_CO_TRY(container->backend,
                co_await calls_.Run(BackendCalls::NameOf(*entry, "recover", container->id.str()),
                                    DeadlineIn(parts_.config.timeouts.create),
                                    [&]() -> Result<std::unique_ptr<gantry::Container>> {
                                      return plugin::GuardedCall(entry->backend_name, [&] {
                                        return entry->sandbox->RecoverContainer(
                                            request, *container->context, blob);
                                      });
                                    }));
  co_return Status();
}

}  // namespace gantry::task
