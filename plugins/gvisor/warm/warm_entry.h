// SPDX-License-Identifier: Apache-2.0
//
// A sentry that is booted with gantry's own root, in a network namespace without anything in it,
// and waits for a pod. Nothing has been started in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/pool/process_pool.h>

#include "plugins/gvisor/launch/runsc_registry.h"
#include "plugins/gvisor/options.h"
#include "plugins/gvisor/pod/pod.h"
#include "plugins/gvisor/warm/warm_key.h"

namespace gantry::gvisor {

/// What sandboxes of a handler are like.
struct WarmHandler {
  std::string name;
  Options options;
  Flags flags;
};

/// Thread: one at a time.
struct WarmEntry : PooledProcess {
  std::string LastWords() const override;

  WarmKey key;
  /// As a pod's whose bundle is its folder.
  PodRecord record;
  std::shared_ptr<const Runsc> runsc;
  /// As `MakeBoundedLog`.
  UniqueFd log{};
};

/// Boots one in the empty directory `folder`; a canary has shown that its build can. When it
/// fails nothing is left of it but the folder. `context`: the backend's own.
/// Errors: as for a pod's sentry. Blocks: for a tenth of a second, or the handler's `timeout_ms`
/// for a step.
Result<WarmEntry> BootWarm(SandboxContext& context, RunscRegistry& runscs,
                           const WarmHandler& handler, const std::string& folder,
                           const PoolMaker::Spawned& spawned);

/// Those that wait for pods of these handlers, each with `warm` above 0: all are `WarmEntry`.
/// `context` must outlive it.
std::shared_ptr<ProcessPool> MakeWarmPool(SandboxContext& context,
                                          std::vector<WarmHandler> handlers,
                                          const std::shared_ptr<RunscRegistry>& runscs);

/// One of such a pool.
const WarmEntry& WarmEntryOf(const PooledProcess& one);

/// Where a pod has its own.
struct WarmPlace {
  std::string bundle;
  std::vector<std::string> cgroups;
  /// Of its network; empty: one without anything in it.
  std::string netns;
};

/// Makes it the pod's, as if it had been booted for that: its process, its files, its log, its
/// record. Its process is not in the pod's cgroups yet. On failure it is nobody's, and has to be
/// discarded. Errors: kFailedPrecondition: the bundle is on another file system than the folder; as
/// `Pod::Change`.
Status GiveTo(Pod& pod, const WarmEntry& entry, const WarmPlace& place);

}  // namespace gantry::gvisor
