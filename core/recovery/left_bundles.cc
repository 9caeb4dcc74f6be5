// SPDX-License-Identifier: Apache-2.0
//
// One look is: the record, config.json, the cgroup with what watches its memory, and whether the
// root is mounted. What failed for want of descriptors or memory is looked at again.
#include "core/recovery/left_bundles.h"

#include <atomic>
#include <chrono>
#include <utility>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>
#include <gantry/toolkit/process/backoff.h>

#include "core/async/worker_pool.h"
#include "core/config/config.h"
#include "core/log/log.h"
#include "core/oci/bundle.h"
#include "core/oci/bundle_spec.h"
#include "core/os/fs.h"
#include "core/task/contexts.h"

namespace gantry::task {
namespace {

/// What is short now, a descriptor or memory, may be there soon: others that are being
/// taken up need it for a moment.
constexpr Backoff::Terms kShort{
    .no_event = "nothing tells that a descriptor or memory is free again",
    .first = std::chrono::milliseconds(50),
    .longest = std::chrono::milliseconds(50)};
/// A worker that takes longer hangs at something, and another one goes on behind it.
constexpr auto kOfOneWalk = std::chrono::milliseconds(100);

/// The system could not read it; it may be as good as ever.
bool IsUnread(const Result<store::Record>& read) { return !read && read.error().sys_errno != 0; }

/// No record is left of it, so what is mounted there is nobody's any more.
void UnmountWhatContainerdDeletes(const std::string& bundle) {
  const std::string hidden = oci::NameWhileDeleted(bundle);
  if (const auto unmounted = mount::UnmountTree(hidden); !unmounted) {
    LogWarning("unmount what containerd could not delete at '{}': {}", hidden,
               unmounted.error().message);
  }
}

/// The record of a bundle; one that is damaged is put aside. Where there is none, its first
/// write may have been killed half-way (of later ones the next write removes what is left), or
/// containerd has deleted the bundle without asking.
/// Thread: workers.
Result<store::Record> ReadRecord(const std::string& bundle) {
  Result<store::Record> read = store::Read(bundle);
  const Code code = read ? Code::kOk : read.error().code;
  if (code == Code::kNotFound) {
    store::RemoveUnfinished(bundle);
    UnmountWhatContainerdDeletes(bundle);
  }
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
  record.rootfs = spec.RootfsIn(record.bundle, !record.mounts.empty());
}

/// An engine was killed while it took it away, behind all that its backend had to take away.
bool IsRootGone(const store::Record& record) {
  const bool has_run = record.state != State::kCreating && record.state != State::kCreated;
  return !has_run && !record.mounts.empty() && !mount::IsMountPoint(record.rootfs).value_or(true);
}

Found FindIn(const ContainerId& id, const std::string& bundle, size_t max_spec_bytes) {
  Found found;
  found.record = ReadRecord(bundle);
  found.lacks = IsUnread(found.record) && found.record.error().code == Code::kResourceExhausted;
  if (!found.record || found.is_pod()) {
    return found;
  }
  store::Record& record = *found.record;
  if (!record.rootfs.empty()) {
    found.spec_json = ReadFile(bundle + "/config.json", max_spec_bytes).value_or("");
  } else if (auto spec = oci::ReadSpec(bundle, max_spec_bytes)) {
    AddFromSpec(*spec, record);
    found.spec_json = std::move(spec->json);
  } else {
    AddFromSpec({}, record);
  }
  found.root_is_gone = IsRootGone(record);
  if (auto cgroup = cgroup::Cgroup::Decode(record.blobs["cgroup"]); cgroup && !cgroup->empty()) {
    found.cgroup = std::move(*cgroup);
    found.frozen = found.cgroup.Frozen().value_or(false);
    if (auto oom = OpenOomWatch(id, found.cgroup)) {
      found.oom = std::move(*oom);
    } else {
      found.lacks = oom.error().code == Code::kResourceExhausted;
    }
  }
  return found;
}

/// The same; what goes wrong with one is no other's business.
Found FindSafely(const LeftBundle& look, size_t max_spec_bytes) {
  try {
    return FindIn(look.id, look.bundle, max_spec_bytes);
  } catch (...) {
    Found none;
    none.record = std::unexpected(async::internal::DescribeCurrentException());
    return none;
  }
}

/// Several workers may go through it: one that hangs at a bundle has taken that one only.
struct Reading {
  Reading(std::vector<LeftBundle> all_in, size_t most, int tries_in)
      : all(std::move(all_in)), max_spec_bytes(most), tries(tries_in) {}

  const std::vector<LeftBundle> all;
  const size_t max_spec_bytes;
  /// How often what is short is looked at again.
  const int tries;
  std::atomic<size_t> next = 0;
};

/// Returns those that could not be read for want of something. Thread: workers.
std::vector<LeftBundle> GoThrough(async::Loop& loop, Reading& reading) {
  std::vector<LeftBundle> left;
  for (size_t i = reading.next++; i < reading.all.size(); i = reading.next++) {
    const LeftBundle& one = reading.all[i];
    const async::Charged charged(one.account);
    Found found = FindSafely(one, reading.max_spec_bytes);
    if (reading.tries > 0 && found.lacks) {
      left.push_back(one);
      continue;
    }
    loop.Post([event = one.found, found = std::move(found), account = one.account]() mutable {
      const async::Charged for_it(std::move(account));
      event.Set(std::move(found));
    });
  }
  return left;
}

/// Those that nobody has looked at.
std::vector<LeftBundle> TakeRest(Reading& reading) {
  std::vector<LeftBundle> rest;
  for (size_t i = reading.next++; i < reading.all.size(); i = reading.next++) {
    rest.push_back(reading.all[i]);
  }
  return rest;
}

/// One worker's way through it; `ended` is set at its end.
async::Task<void> Walk(async::Loop& loop, async::WorkerPool& pool, std::shared_ptr<Reading> reading,
                       async::OneShot<void> ended) {
  const auto walk = [&]() -> Result<std::vector<LeftBundle>> { return GoThrough(loop, *reading); };
  auto walked = co_await pool.RunFor(nullptr, walk, async::Refusable::kNo);
  std::vector<LeftBundle> left = walked ? std::move(*walked) : TakeRest(*reading);
  ended.Set();
  if (!walked && (walked.error().code == Code::kCanceled || reading->tries == 0)) {
    // There is no worker for it.
    for (LeftBundle& one : left) {
      Found none;
      none.record = std::unexpected(walked.error());
      one.found.Set(std::move(none));
    }
  } else if (!left.empty()) {
    co_await async::Sleep(loop, Backoff(kShort).Next());
    co_await ReadLeftBundles(loop, pool, std::move(left), reading->max_spec_bytes,
                             reading->tries - 1);
  }
}

}  // namespace

async::Task<void> ReadLeftBundles(async::Loop& loop, async::WorkerPool& pool,
                                  std::vector<LeftBundle> all, size_t max_spec_bytes, int tries) {
  const auto reading = std::make_shared<Reading>(std::move(all), max_spec_bytes, tries);
  async::Scope walks;
  while (reading->next < reading->all.size()) {
    const async::OneShot<void> ended;
    walks.Spawn("look", Walk(loop, pool, reading, ended));
    co_await ended.WaitFor(loop, kOfOneWalk);
  }
  co_await walks.Join();
}

}  // namespace gantry::task
