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
#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/async/worker_pool.h"
#include "core/cgroup/oom_watch.h"
#include "core/store/record.h"

namespace gantry::task {

/// What there is of it.
struct Found {
  Result<store::Record> record = Fail(Code::kNotFound, "no record");
  /// Of the bundle; empty where it cannot be read any more.
  std::string spec_json;
  cgroup::Cgroup cgroup;
  std::unique_ptr<cgroup::OomWatch> oom;
  bool frozen = false;
  /// Of one that has never run: its root is mounted no more. Nothing may be made ready in it.
  bool root_is_gone = false;
  /// Descriptors or memory were short: another look may find more.
  bool lacks = false;

  bool is_pod() const { return record && record->kind == store::Kind::kSandbox; }
};

/// One to be looked at.
struct LeftBundle {
  ContainerId id;
  std::string bundle;
  async::AccountPtr account;
  /// Set when it has been looked at.
  async::OneShot<Found> found;
};

/// How often what is short just then, descriptors or memory, is looked at again.
constexpr int kMostReads = 40;

/// Looks at them one after the other, on one worker; where that hangs at one, another goes on
/// with the rest. What is short is waited for, two seconds at most. A record that is damaged is put
/// aside. Thread: loop.
async::Task<void> ReadLeftBundles(async::Loop& loop, async::WorkerPool& pool,
                                  std::vector<LeftBundle> all, size_t max_spec_bytes,
                                  int tries = kMostReads);

}  // namespace gantry::task
