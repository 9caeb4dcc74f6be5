// SPDX-License-Identifier: Apache-2.0
//
// A further process in a container. It is made and started by its `Start`; what is on record in
// between is that it was made, streams and all, so the next engine goes on from there.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/vmm/container/guest_process.h"
#include "plugins/vmm/container/pod.h"

namespace gantry::vmm {

/// Thread: workers, as `Process`.
class VmmExec : public Process {
 public:
  VmmExec(std::shared_ptr<Pod> pod, std::string container, const ExecRequest& request,
          ProcessContext& context);
  VmmExec(const VmmExec&) = delete;
  VmmExec& operator=(const VmmExec&) = delete;
  ~VmmExec() override;

  Status Start() override;
  Status Kill(uint32_t signal) override;
  Status Resize(ConsoleSize size) override;
  Status Delete() override;
  /// After a restart of the engine, where `Start` had been called. Errors: kAborted: it did not
  /// take effect.
  Status Recover();

 private:
  Status Make();
  Status Abort(std::string_view reason);
  Status Run();

  const std::shared_ptr<Pod> pod_;
  const ExecRequest request_;
  ProcessContext& context_;
  const std::shared_ptr<EndReport> report_;
  GuestProcess process_;
  /// It runs in the guest, or has ended there. Asked at any time.
  std::atomic<bool> is_started_ = false;
};

}  // namespace gantry::vmm
