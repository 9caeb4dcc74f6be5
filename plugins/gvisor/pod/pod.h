// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox, its containers and their execs share.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/toolkit/process/oom_score.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/container/container_kind.h"
#include "plugins/gvisor/launch/child.h"
#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/options.h"
#include "plugins/gvisor/sentry/sentry.h"
#include "plugins/gvisor/spec/pid_namespaces.h"
#include "plugins/gvisor/spec/volumes.h"

namespace gantry::forward {
class PortForward;
}  // namespace gantry::forward

namespace gantry::gvisor {

/// What of a sandbox is saved, and of the sentry that was started for it.
struct PodRecord {
  /// The container that is the sentry's root; empty: a root of gantry's own.
  std::string root;
  /// What a root of gantry's own is called in the sentry; empty: as the sandbox.
  std::string own_id;
  int32_t pid = 0;
  uint64_t start_time = 0;
  /// `CreateLauncher` has started it.
  bool by_create = false;
  /// The root's gofer, where that has started it; 0: it has started none.
  int32_t gofer_pid = 0;
  uint64_t gofer_start_time = 0;
  std::string socket;
  /// Where it was launched, and with what: containers that come later need the same.
  LaunchPlace place;
  std::string runsc;
  bool asks_for_mounts = false;
  bool runs_hooks = false;
  std::string conf;
  /// Those that its sentry knows, of all its containers.
  std::vector<Volume> volumes;
  bool host_network = false;
  /// What is taken of the pod's network is IPv4 alone.
  bool no_ipv6 = false;
  /// What was in the pod's network namespace before it was taken.
  std::string netns;
  std::string network;
  SentryState state;
  /// What the kernel had killed in its cgroups for want of memory when it was made.
  uint64_t oom_kills = 0;
  /// Memory has ended it. Its cgroups, which tell it, go before the last of its containers.
  bool out_of_memory = false;

  /// What the root is called in the sentry of that sandbox.
  std::string RootId(const SandboxId& sandbox) const;

  std::string ToJson() const;
  /// Errors: kDataLoss.
  static Result<PodRecord> FromJson(const std::string& text);
};

/// Thread: any, where nothing else is said.
class Pod {
 public:
  Pod(SandboxId id, Namespace ns, SandboxContext& context, Options options, Flags flags,
      ContainerKind root_kind = ContainerKind::kRoot)
      : id_(std::move(id)),
        ns_(std::move(ns)),
        context_(context),
        options_(std::move(options)),
        flags_(std::move(flags)),
        root_kind_(root_kind) {}

  const SandboxId& id() const { return id_; }

  SandboxContext& context() { return context_; }

  const Options& options() const { return options_; }

  const Flags& flags() const { return flags_; }

  PidNamespaces& pid_namespaces() { return pid_namespaces_; }

  /// The pod has no network namespace of its own. Before its sentry is started, or taken up.
  void UseHostNetwork() { flags_.network = Network::kHost; }

  /// What the sentry's root is; never kFurther.
  ContainerKind root_kind() const { return root_kind_; }

  /// Of the call under way, and of so many steps of it.
  Deadline StepDeadline(int steps = 1) const;

  /// What the sentry's root is called there.
  std::string RootId() const { return record().RootId(id_); }

  /// A copy of what is saved.
  PodRecord record() const;
  /// Changes it and saves it. Errors: as `SandboxContext::Save`; then it is as before.
  Status Change(const std::function<void(PodRecord&)>& change);
  /// As it was saved.
  void Load(PodRecord record);

  /// The sentry; null: none has been started.
  std::shared_ptr<Sentry> sentry() const;
  std::shared_ptr<HostProcess> process() const;
  void Have(std::shared_ptr<HostProcess> process, std::shared_ptr<Sentry> sentry);
  /// For `Sentry`.
  Sentry::Save StateSaver();

  /// Null: no ports are forwarded.
  std::shared_ptr<forward::PortForward> forward() const;
  void Have(std::shared_ptr<forward::PortForward> forward);

  /// Is there and has not ended.
  bool IsAlive() const;

  /// What came of a SIGKILL or a removal that the sentry was asked for at `asked`. Where it has had
  /// its time and has not answered, it hangs: nothing in it could be ended any more, and the pod
  /// would be there for ever. It is killed, which is success. Else: `error`.
  Status KillIfItHangs(Error error, std::chrono::steady_clock::time_point asked);

  OomScores& oom_scores() { return oom_scores_; }

  /// Gives its sentry what its containers are to have, after a change of them.
  void ApplyOomScores();

  /// runsc as this pod was started with, from the store.
  Result<UniqueFd> Runsc();

 private:
  const SandboxId id_;
  const Namespace ns_;
  SandboxContext& context_;
  const Options options_;
  Flags flags_;
  const ContainerKind root_kind_;
  PidNamespaces pid_namespaces_;
  OomScores oom_scores_;
  mutable Mutex mutex_;
  PodRecord record_ GANTRY_GUARDED_BY(mutex_);
  std::shared_ptr<HostProcess> process_ GANTRY_GUARDED_BY(mutex_);
  std::shared_ptr<Sentry> sentry_ GANTRY_GUARDED_BY(mutex_);
  std::shared_ptr<forward::PortForward> forward_ GANTRY_GUARDED_BY(mutex_);
};

inline constexpr const char* kRunscName = "runsc";

}  // namespace gantry::gvisor
