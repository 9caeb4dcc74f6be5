// SPDX-License-Identifier: Apache-2.0
//
// What the containers of a sandbox have in common: they run in the sentry, which is asked for
// all that concerns their processes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/toolkit/guest/process_end.h>

#include "plugins/gvisor/pod/pod.h"
#include "plugins/gvisor/spec/process_spec.h"
#include "plugins/gvisor/spec/spec.h"
#include "plugins/gvisor/stats/container_stats.h"

namespace gantry::gvisor {

/// Why a container has ended.
struct ContainerEnd {
  bool out_of_memory = false;
};

/// Thread: workers, as `Container`.
class GvisorContainer : public Container {
 public:
  GvisorContainer(const ContainerRequest& request, ContainerContext& context,
                  std::shared_ptr<Pod> pod)
      : id_(request.id),
        bundle_(request.bundle),
        context_(context),
        pod_(std::move(pod)),
        execs_(std::make_shared<ExecTable>()),
        rights_(RightsIn(request.spec_json)),
        stats_(id_.str(), bundle_) {}

  Status KillAll(uint32_t signal) override;
  Status Pause() override;
  Status Resume() override;
  Result<ContainerMetrics> Stats() override;
  Result<std::vector<ProcessInfo>> Processes() override;
  Status Checkpoint(const CheckpointRequest& request) override;
  Result<std::unique_ptr<Process>> Exec(const ExecRequest& request,
                                        ProcessContext& context) override;
  Result<std::unique_ptr<Process>> RecoverExec(const ExecRequest& request, ProcessContext& context,
                                               bool started) override;

 protected:
  const ContainerId& id() const { return id_; }

  const std::string& bundle() const { return bundle_; }

  ContainerContext& context() { return context_; }

  Pod& pod() const { return *pod_; }

  const std::shared_ptr<Pod>& shared_pod() const { return pod_; }

  /// Of one that has ended; none: it has not, as far as this knows.
  virtual std::optional<ContainerEnd> End() const = 0;

  /// Errors: kFailedPrecondition: what gVisor cannot mount.
  Status CheckMounts(const Spec& spec) const;

  /// What is kept of what it has used.
  Status ForgetStats() const { return stats_.Forget(); }

  /// Errors: kUnavailable: there is no sentry.
  Result<std::shared_ptr<Sentry>> RunningSentry() const;
  Status Signal(const SignalTarget& target, uint32_t signal);
  /// Last in a start. Errors: of a hook that fails; then its init has been killed.
  Status RunPoststart();
  /// Last in a delete, and where it could not be made.
  void RunPoststop();
  /// Those of createContainer are run by a gofer that serves the root before it serves a file, of
  /// releases since 2026-05; those of startContainer would be programs of the container, which
  /// nobody runs. `gofer`: there is such a one.
  /// Source: runsc 2026-09, runsc/cmd/sandboxsetup/gofer_mount.go.
  void LogHooksLeftOut(const InsideHooks& hooks, bool gofer) const;

 private:
  const ContainerId id_;
  const std::string bundle_;
  ContainerContext& context_;
  const std::shared_ptr<Pod> pod_;
  const std::shared_ptr<ExecTable> execs_;
  const oci::Capabilities rights_;
  ContainerStats stats_;
};

/// Sends a signal in a sandbox. Errors: kNotFound: the process has ended, perhaps with its
/// sentry.
Status SendSignal(Pod& pod, const SignalTarget& target, uint32_t signal);

/// Kills the processes of a container whose init has ended, one by one: a signal to all would
/// bring the whole sandbox to a stop, and starts that are under way would have to be waited for
/// (sentry/call_slots.h). What forks faster than that, ends with the container's delete.
void KillLeftovers(Pod& pod, const std::string& container);

}  // namespace gantry::gvisor
