// SPDX-License-Identifier: Apache-2.0
//
// A process of the guest, a container's init or an exec, and what the agent is asked of it.
//
// What the guest says is not relied upon: where it does not answer, or says that it has killed what
// does not end, its machine is killed. So no tenant keeps a pod from being ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/container/pod.h"
#include "plugins/vmm/container/process_streams.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {

/// Thread: any, but for `Make`.
class GuestProcess {
 public:
  /// `exec`: empty: the container's init. `report`: of its end.
  GuestProcess(std::shared_ptr<Pod> pod, std::string container, std::string exec,
               std::shared_ptr<EndReport> report)
      : pod_(std::move(pod)),
        container_(std::move(container)),
        exec_(std::move(exec)),
        report_(std::move(report)) {}

  const std::string& container() const { return container_; }

  const std::string& exec() const { return exec_; }

  EndReport& report() { return *report_; }

  const std::shared_ptr<EndReport>& shared_report() const { return report_; }

  /// Made, with its streams given to the core and a pid that stands for it; it waits for its start.
  /// `request`: all but the streams. On failure it may be there in the guest: `Delete`.
  template <class Request>
  Status Make(Request request, bool terminal, ProcessContext& context) {
    GANTRY_TRY(const HostPid pid, pod_->MachinePid());
    GANTRY_TRY(ProcessStreams streams,
               ProcessStreams::Expect(pod_->machine().guest().streams(), terminal));
    request.streams = streams.tokens();
    auto made = pod_->Call(request);
    if (!made && made.error().code == Code::kAlreadyExists) {
      // A call that was given up, or an engine before this one, has come as far.
      GANTRY_CHECK_OK(Delete());
      made = pod_->Call(request);
    }
    if (!made) {
      return std::unexpected(std::move(made).error());
    }
    LogWarnings(*made);
    context.SetPid(pid);
    return streams.Attach(context, pod_->StepDeadline());
  }

  /// Errors: those of the agent: a program that cannot be run.
  Status Start();
  /// Errors: kNotFound: it has ended.
  Status Signal(uint32_t signal, bool all);
  Status Resize(ConsoleSize size);
  /// Ends it in the guest and lets nothing of it stay there. Its end is told when this returns.
  /// What a guest refuses is logged: its machine ends with the pod.
  Status Delete();

  /// As the guest has it now; none: it is not there. Errors: as `Pod::Call`.
  Result<std::optional<protocol::ProcessReport>> Find();

 private:
  std::string Name() const;
  Status Finished(bool all) const;
  void LogWarnings(const protocol::CreateAnswer& made);
  /// Whether it has been killed before, and time enough since.
  bool IsOverdue();

  const std::shared_ptr<Pod> pod_;
  const std::string container_;
  const std::string exec_;
  const std::shared_ptr<EndReport> report_;
  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> killed_at_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::vmm
