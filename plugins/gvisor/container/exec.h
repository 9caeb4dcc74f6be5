// SPDX-License-Identifier: Apache-2.0
//
// A further process in a container. The sentry tells how it ended once, to whoever asks first:
// so the call that starts it and the question lie in the keeper's store, and what was
// answered goes into a file of the bundle before it is let go.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/gvisor/container/container.h"
#include "plugins/gvisor/container/process_end.h"
#include "plugins/gvisor/sentry/durable_call.h"

namespace gantry::gvisor {

/// Where it runs.
struct ExecPlace {
  ContainerId container;
  std::string bundle;
  std::shared_ptr<Pod> pod;
  std::shared_ptr<ExecTable> table;
  /// Of the container's init.
  oci::Capabilities rights;
};

/// Thread: workers, as `Process`.
class GvisorExec : public Process {
 public:
  GvisorExec(ExecPlace place, ExecRequest request, ProcessContext& context);
  GvisorExec(const GvisorExec&) = delete;
  GvisorExec& operator=(const GvisorExec&) = delete;

  ~GvisorExec() override { report_->Retire(); }

  Status Start() override;
  Status Kill(uint32_t signal) override;
  Status ConsoleSignal(uint32_t signal) override;
  Status Delete() override;
  /// After a restart of the engine, where `Start` had been called. Errors: kAborted: it did not
  /// take effect.
  Status Recover();

 private:
  std::string Path() const;
  /// The sentry has answered how it started; `call` has the answer. `wait`: stored, nothing has
  /// been sent on it; none: there is none yet.
  Status Keep(DurableCall call, std::optional<DurableCall> wait, Deadline deadline);
  urpc::Outcome<urpc::Connection> AskForEnd(std::optional<DurableCall> wait, Deadline deadline);
  Status Watch(std::vector<urpc::Connection> waits);
  Status Signal(SignalMode mode, uint32_t signal);
  Status Abort(std::string_view reason);
  Status TakeUp();

  const ExecPlace place_;
  const ExecRequest request_;
  ProcessContext& context_;
  const CallNames names_;
  /// In the sentry. 0: it does not run yet. Asked at any time.
  std::atomic<int32_t> pid_ = 0;
  const std::shared_ptr<EndReport> report_;
  std::shared_ptr<ExitWait> wait_;
};

}  // namespace gantry::gvisor
