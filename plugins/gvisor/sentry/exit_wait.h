// SPDX-License-Identifier: Apache-2.0
//
// Waits for the end of a process in a sentry, without a thread: the answer to a Wait is
// watched, and looked at without being taken, so that an engine that is killed before the end
// is on record leaves it for the next.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>

#include "plugins/gvisor/sentry/container_manager.h"

namespace gantry::gvisor {

/// 128 + SIGKILL: the end of a process whose sentry is gone.
inline constexpr uint32_t kKilledStatus = 137;

/// Thread: any.
class ExitWait : public std::enable_shared_from_this<ExitWait> {
 public:
  /// How it ended, as containerd reads it. None: its sentry has gone and not said it, and it
  /// counts as killed.
  using Ended = std::function<void(std::optional<uint32_t> status)>;

  /// `ended` is called once: from a worker, or within `Settle`. The connections are closed when it
  /// returns: a sentry waits for that at its end. `connections`: each with a Wait under way; what
  /// one of them answers counts, a refusal or a sentry that is gone only when it is the last.
  static Result<std::shared_ptr<ExitWait>> Begin(SandboxContext& context,
                                                 std::vector<urpc::Connection> connections,
                                                 Ended ended);

  /// Returns when the end has been told, by whichever thread. The process has been killed; where no
  /// answer comes until `deadline`, it counts as that: as where its sentry has gone.
  void Settle(Deadline deadline);

 private:
  struct Branch {
    urpc::Connection connection;
    std::unique_ptr<Watch> watch;
    bool failed = false;
  };

  explicit ExitWait(Ended ended) : ended_(std::move(ended)) {}

  void OnReadable(size_t branch);
  void Tell(std::unique_lock<std::mutex> lock, std::optional<uint32_t> status);

  /// Guards all below.
  std::mutex mutex_;
  std::vector<Branch> branches_;
  /// Null: it is called, or was.
  Ended ended_;
  bool is_told_ = false;
  std::condition_variable told_;
};

}  // namespace gantry::gvisor
