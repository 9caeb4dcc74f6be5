// SPDX-License-Identifier: Apache-2.0
//
// Whether KVM works on this node, found out once: by an engine in the background, while nobody
// waits for it yet, and kept in a file for the next engine and for `gantryctl doctor`. What worked
// is believed as long as the node runs and kernel, VMM and /dev/kvm are the same; what did not, for
// five minutes: what was wrong may have been mended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

inline constexpr std::chrono::minutes kNextCanary{5};

/// A question, and the canary's program, which has to be open as long as it is asked.
struct CanaryQuestion {
  KvmQuestion question;
  UniqueFd canary;
};

/// Thread: any.
class CanaryRuns {
 public:
  using Choose = std::function<Acceleration(const KvmQuestion& question)>;
  /// Of the node, the same for all its processes.
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// The file lies in `keep_dir`, which is made where it is not there.
  explicit CanaryRuns(std::string keep_dir, Choose choose = ChooseAccelerator,
                      Clock clock = std::chrono::steady_clock::now);
  CanaryRuns(const CanaryRuns&) = delete;
  CanaryRuns& operator=(const CanaryRuns&) = delete;
  /// One that runs goes on, and tells nobody.
  ~CanaryRuns() = default;

  /// Begins, where nothing is known. `question` is asked for on the thread that runs it. Blocks:
  /// never.
  void Begin(std::function<Result<CanaryQuestion>()> question);
  /// What it shows. Errors: kDeadlineExceeded: it still runs; kFailedPrecondition: nobody began.
  /// Blocks: up to `deadline`.
  Result<Acceleration> Await(Deadline deadline);
  /// What an engine has found out, or what the tiny canary shows. Blocks: up to its limit.
  Acceleration Look(const KvmQuestion& question) const;

 private:
  struct State;

  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

/// Which accelerator the choice means. Errors: kFailedPrecondition: it is not there, and why.
Result<Accelerator> Decide(const VmmOptions& options, const Acceleration& found);

}  // namespace gantry::vmm
