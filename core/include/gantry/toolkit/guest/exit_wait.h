// SPDX-License-Identifier: Apache-2.0
//
// Waits for the end of a process in a sandbox, without a thread: the answer to the question how
// it ends is watched, and looked at without being taken, so that an engine that is killed before
// the end is on record leaves it for the next.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>

namespace gantry {

/// A question how a process ends, which has been sent on a connection for that alone.
/// Thread: one at a time. Its destructor closes the connection.
class ExitQuestion {
 public:
  ExitQuestion(const ExitQuestion&) = delete;
  ExitQuestion& operator=(const ExitQuestion&) = delete;
  virtual ~ExitQuestion() = default;

  /// Readable as soon as there is an answer, or none will come. Stays the question's.
  virtual int fd() const = 0;
  /// The exit code, or 128 + the signal's number; the answer stays where it is. None: there is
  /// none until `deadline`, or never. Blocks: up to `deadline`.
  virtual std::optional<uint32_t> Peek(Deadline deadline) = 0;

 protected:
  ExitQuestion() = default;
};

/// Thread: any.
class ExitWait : public std::enable_shared_from_this<ExitWait> {
 public:
  /// How it ended, as containerd reads it. None: its sandbox has gone and not said it, and it
  /// counts as killed.
  using Ended = std::function<void(std::optional<uint32_t> status)>;
  using Questions = std::vector<std::unique_ptr<ExitQuestion>>;

  /// `ended` is called once: from a worker, or within `Settle`. The questions are destroyed when
  /// it returns: a sandbox may wait for that at its end. Of several questions what one of them
  /// answers counts, that there is no answer only when it is the last.
  /// Errors: as `SandboxContext::WatchReadable`.
  static Result<std::shared_ptr<ExitWait>> Begin(SandboxContext& context, Questions questions,
                                                 Ended ended);

  /// Returns when the end has been told, by whichever thread. The process has been killed; where no
  /// answer comes until `deadline`, it counts as that: as where its sandbox has gone.
  /// Blocks: up to `deadline` for each question.
  void Settle(Deadline deadline);

 private:
  struct Branch {
    std::unique_ptr<ExitQuestion> question;
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

}  // namespace gantry
