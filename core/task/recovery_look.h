// SPDX-License-Identifier: Apache-2.0
//
// What an engine before this one has left of a container, or a pod, on disk and in the
// kernel. Several are looked at in one go: a worker that has to be woken for each costs
// more than the look.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/ids.h>

#include "core/os/account.h"
#include "core/os/cgroup.h"
#include "core/os/co.h"
#include "core/os/oom_watch.h"
#include "core/os/worker_pool.h"
#include "core/store/record.h"

namespace gantry::task {

/// What there is of it.
struct Found {
  Result<store::Record> record = Fail(Code::kNotFound, "no record");
  /// Of the bundle; empty where it cannot be read any more.
  std::string spec_json;
  os::Cgroup cgroup;
  std::unique_ptr<os::OomWatch> oom;
  bool frozen = false;
  /// Of one that has never run: its root is mounted no more. Nothing may be made ready in it.
  bool root_is_gone = false;
  /// Descriptors or memory were short: another look may find more.
  bool lacks = false;

  bool is_pod() const { return record && record->kind == store::Kind::kSandbox; }
};

/// One to be looked at.
struct Look {
  ContainerId id;
  std::string bundle;
  os::AccountPtr account;
  /// Set when it has been looked at.
  os::OneShot<Found> found;
};

/// How often what is short just then, descriptors or memory, is looked at again.
constexpr int kMostLooks = 40;

/// Looks at them one after the other, on one worker; where that hangs at one, another goes on
/// with the rest. What is short is waited for, two seconds at most. A record that is damaged is put
/// aside. Thread: loop.
os::Task<void> LookAt(os::Loop& loop, os::WorkerPool& pool, std::vector<Look> all,
                      size_t max_spec_bytes, int tries = kMostLooks);

}  // namespace gantry::task
