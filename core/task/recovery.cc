// SPDX-License-Identifier: Apache-2.0
//
// Taking up what an engine before this one left: for each instance that the
// keeper names, its record is read, its streams are taken out of the store, its
// sandbox and container are recovered by their backend, and ends that came
// meanwhile are handled (recovery_processes.cc). Containers of one pod one after
// the other, in the order in which they were announced; pods side by side, a few at a
// time, those first that somebody has called. Calls to a container wait for this;
// calls to others do not.
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

#include "core/log/log.h"
#include "core/os/fs.h"
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

/// So many groups at a time. More would only share the same processors, and all would
/// be there at the end, not one after the other.
constexpr int kGroupsAtOnce = 8;
/// Who takes longer lets the next one begin beside it.
constexpr auto kOfOneGroup = std::chrono::milliseconds(100);

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

/// What config.json says and the record does not, in one of schema 1.
void AddFromSpec(const oci::Spec& spec, store::Record& record) {
  record.private_pids = spec.has_private_pid_namespace();
  record.netns_path = spec.network_namespace_path();
  record.rootfs = record.mounts.empty() ? spec.RootPath(record.bundle) : record.bundle + "/rootfs";
}

}  // namespace

/// What there is of a container.
struct Service::Found {
  Result<store::Record> record = Fail(Code::kNotFound, "no record");
  /// Of the bundle; empty where it cannot be read any more.
  std::string spec_json;
  bool frozen = false;

  bool is_pod() const { return record && record->kind == store::Kind::kSandbox; }

  /// Thread: workers.
  static Found In(const std::string& bundle, size_t max_spec_bytes);
};

Service::Found Service::Found::In(const std::string& bundle, size_t max_spec_bytes) {
  Found found;
  found.record = ReadRecord(bundle);
  if (!found.record || found.is_pod()) {
    return found;
  }
  store::Record& record = *found.record;
  if (!record.rootfs.empty()) {
    found.spec_json = os::ReadFile(bundle + "/config.json", max_spec_bytes).value_or("");
  } else if (auto spec = oci::ReadSpec(bundle, max_spec_bytes)) {
    AddFromSpec(*spec, record);
    found.spec_json = std::move(spec->json);
  } else {
    AddFromSpec({}, record);
  }
  if (const auto cgroup = os::Cgroup::Decode(record.blobs["cgroup"]); cgroup && !cgroup->empty()) {
    found.frozen = cgroup->Frozen().value_or(false);
  }
  return found;
}

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
  Groups by_group;
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
    recovering_.try_emplace(instance.address);
    order_.Add(instance.address);
  }
  os::Start(AwaitReplays());
  os::Start(RecoverAll(std::move(by_group)));
}

os::Task<void> Service::RecoverAll(Groups by_group) {
  os::Scope turns;
  os::Scope groups;
  for (int i = 0; i < kGroupsAtOnce; ++i) {
    turns.Spawn("recover", RecoverInTurn(by_group, groups));
  }
  co_await turns.Join();
  co_await groups.Join();
  DropOrphanedSandboxes();
}

os::Task<void> Service::RecoverInTurn(Groups& by_group, os::Scope& groups) {
  while (const std::optional<std::string> address = order_.Next()) {
    const os::OneShot<void> done = recovering_.at(*address);
    groups.Spawn(*address, RecoverGroup(*address, std::move(by_group.at(*address))));
    co_await done.WaitFor(parts_.services.loop, kOfOneGroup);
  }
}

os::Task<void> Service::RecoverGroup(std::string address, std::vector<uint64_t> numbers) {
  const os::OneShot<void> done = recovering_.at(address);
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
  Found left = co_await Look(container);
  co_await pods_.Recover(container->group, instance, left.is_pod() ? &*left.record : nullptr);
  Status recovered;
  if (left.is_pod()) {
    recovered = Fail(Code::kNotFound, "it is a pod");
  } else if (left.record) {
    recovered = co_await Recover(container, std::move(left));
  } else {
    recovered = std::unexpected(left.record.error());
  }
  if (!recovered) {
    Leave(*container);
    if (recovered.error().code != Code::kNotFound) {
      LogError({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recover: {}",
               recovered.error().message);
    }
  }
  container->ready.Set();
  if (recovered) {
    Protect(*container);
  }
}

os::Task<Service::Found> Service::Look(ContainerPtr container) {
  const auto look = [container, most = parts_.config.limits.max_spec_bytes]() -> Result<Found> {
    return Found::In(container->bundle, most);
  };
  for (int looks = 1;; ++looks) {
    Result<Found> looked =
        co_await parts_.services.pool.RunFor(container->group->account, look, os::Refusable::kNo);
    Found found;
    if (looked) {
      found = std::move(*looked);
    } else {
      found.record = std::unexpected(std::move(looked).error());
    }
    if (!IsUnread(found.record) || found.record.error().code != Code::kResourceExhausted ||
        looks == kMostReads) {
      co_return found;
    }
    co_await os::Sleep(parts_.services.loop, kReadAgainAfter);
  }
}

os::Task<Status> Service::Recover(ContainerPtr container, Found found) {
  store::Record& record = *found.record;
  RestoreContainer(*container, record);
  if (const std::string& cgroup = record.blobs["cgroup"]; !cgroup.empty()) {
    if (Result<os::Cgroup> decoded = os::Cgroup::Decode(cgroup)) {
      OnCgroup(*container, std::move(*decoded));
    }
  }
  co_await RecoverSandbox(container, record);
  co_await RecoverStreams(container->init);
  // Ends that are known while the rest is not yet are held back.
  container->init->start_pending = true;
  const Status backend = co_await RecoverBackend(container, std::move(found.spec_json));
  if (record.state == State::kCreating) {
    left_streams_[KeyOf(*container->group, container->id.str())] =
        std::exchange(container->init->left_streams, {});
    co_await RollBack(container);
    co_return Fail(Code::kNotFound, "it had not been created");
  }
  if (!backend) {
    LogError({{"id", container->id.str()}}, "its backend cannot recover it: {}",
             backend.error().message);
    co_await AdoptByRecord(container->init);
  }
  for (const store::ExecRecord& exec : record.execs) {
    if (exec.state == State::kDeleting) {
      container->deleted_execs[exec.id] = exec.process;
    } else {
      co_await RecoverExec(container, exec);
    }
  }
  if (found.frozen && container->init->state == State::kRunning) {
    // An engine may have been killed between a pause and its record, and nobody ask again.
    container->init->state = State::kPaused;
  }
  co_await SettleStarts(container);
  LogInfo({{"ns", container->group->ns.str()}, {"id", container->id.str()}}, "recovered, {}",
          store::StateName(container->init->state));
  co_return Status();
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
  container.rootfs = record.rootfs;
  container.netns_path = record.netns_path;
  container.private_pids = record.private_pids;
  if (const auto blob = record.blobs.find("container"); blob != record.blobs.end()) {
    container.blob = blob->second;
  }
  container.init = NewProcess(container, ExecId());
  Restore(*container.init, record.stdio, record.state, record.init);
  container.context =
      std::make_unique<ContainerContextImpl>(parts_, *this, container.weak_from_this());
}

os::Task<void> Service::RecoverSandbox(ContainerPtr container, const store::Record& record) {
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
  request.netns_path = container->netns_path;
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
