// SPDX-License-Identifier: Apache-2.0
//
// Whether KVM works on this node with a VMM and a guest's kernel, found out once for each pair that
// handlers name: by an engine in the background, while nobody waits for it yet, and kept in a file
// for the next engine and for `gantryctl doctor`. What worked is believed as long as the node runs
// and kernel, VMM and /dev/kvm are the same; what did not, for five minutes: what was wrong may
// have been mended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/machine/canary_file.h"
#include "plugins/vmm/options.h"

namespace gantry::vmm {

inline constexpr std::chrono::minutes kNextCanary{5};

/// Thread: any.
class CanaryRuns {
 public:
  /// Finds it out. The question has VMM and kernel, and no canary yet.
  using Choose = std::function<Acceleration(const KvmQuestion& question)>;
  /// Of the node, the same for all its processes.
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// So many answers are known at a time; of what is asked beyond them the oldest is forgotten.
  static constexpr size_t kMaxKnown = 32;

  /// The file lies in `keep_dir`.
  explicit CanaryRuns(std::string keep_dir, Choose choose,
                      Clock clock = std::chrono::steady_clock::now)
      : keep_dir_(std::move(keep_dir)), choose_(std::move(choose)), clock_(std::move(clock)) {}

  CanaryRuns(const CanaryRuns&) = delete;
  CanaryRuns& operator=(const CanaryRuns&) = delete;
  /// As `Leave`; waits for the canary that runs, which is for who has `choose` to end.
  ~CanaryRuns();

  /// Begins, where nothing is known of that VMM and kernel; one after the other. Errors: as
  /// `Await`. Blocks: never.
  Status Begin(const KvmQuestion& question);
  /// What it shows; begins, where nobody has. Errors: kDeadlineExceeded: it still runs, or others
  /// do; kResourceExhausted: too many wait for theirs; kUnavailable: after `Leave`.
  /// Blocks: up to `deadline`.
  Result<Acceleration> Await(const KvmQuestion& question, Deadline deadline);
  /// The engine ends: nothing is begun or kept any more, and nobody waits. Blocks: never.
  void Leave();

 private:
  struct Entry {
    KvmQuestion question;
    /// Of the question.
    std::string key;
    bool runs = false;
    std::optional<Found> found{};
  };

  using EntryPtr = std::shared_ptr<Entry>;

  Result<EntryPtr> EntryOf(const KvmQuestion& question) GANTRY_REQUIRES(mutex_);
  Status MakeRoom() GANTRY_REQUIRES(mutex_);
  /// Again, too.
  void Enqueue(const EntryPtr& entry) GANTRY_REQUIRES(mutex_);
  void Run();
  /// Kept by an engine before, or shown now.
  Found FindOut(const KvmQuestion& question, const std::string& key);
  bool IsBelieved(const Found& found) const;
  bool has_left();

  const std::string keep_dir_;
  const Choose choose_;
  const Clock clock_;

  Mutex mutex_;
  std::condition_variable changed_;
  /// The oldest first.
  std::vector<EntryPtr> known_ GANTRY_GUARDED_BY(mutex_);
  std::deque<EntryPtr> queue_ GANTRY_GUARDED_BY(mutex_);
  bool left_ GANTRY_GUARDED_BY(mutex_) = false;
  /// Ends when the queue is empty; the last it does is to say so here.
  bool works_ GANTRY_GUARDED_BY(mutex_) = false;
  std::thread thread_ GANTRY_GUARDED_BY(mutex_);
};

/// What an engine has found out and kept in `keep_dir`, or what the tiny canary alone shows, by
/// `choose`. Blocks: up to its limit.
Acceleration LookAtKvm(const std::string& keep_dir, const KvmQuestion& question,
                       const CanaryRuns::Choose& choose);

/// Which accelerator the choice means. Errors: kFailedPrecondition: it is not there, and why.
Result<Accelerator> Decide(const VmmOptions& options, const Acceleration& found);

}  // namespace gantry::vmm
