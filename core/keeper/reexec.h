// SPDX-License-Identifier: Apache-2.0
//
// Another program in the keeper's place: the process stays, with its pid, children and
// descriptors, so nobody notices.
//
// The new program is opened once, and looked at: whatever its path leads to meanwhile, what is
// executed is that file. It is first run as a child that only reads the state
// (`gantry-keeper --check-state-fd N`) and says whether it understands it. Then, as soon
// as the keeper is between two messages everywhere, the state goes into a memfd and the
// process executes the new program (`--state-fd N --previous-fd M`). Until that execve(2)
// succeeds, any failure leaves the keeper as it was. A program that cannot take the
// state after all executes the previous one again, by its descriptor.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/keeper/state.h"
#include "core/link/messages.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: until the check has been executed, and for the
/// time of the change.
class Reexec {
 public:
  struct Events {
    /// Everything can be saved now, and the change made.
    std::function<bool()> idle;
    /// `asker` is whom the next program answers.
    std::function<state::Keeper(uint64_t asker)> save;
  };

  /// Only of what kept the old program.
  using Failed = std::function<void(const Error&)>;

  Reexec(async::Loop& loop, Events events) : loop_(loop), events_(std::move(events)) {}

  ~Reexec();
  Reexec(const Reexec&) = delete;
  Reexec& operator=(const Reexec&) = delete;

  /// Errors (through `failed`): kFailedPrecondition.
  void Begin(const std::string& program, uint64_t asker, Failed failed);
  /// A child ended; it may have been the check.
  void OnExit(const link::Exit& exit);

 private:
  struct Change {
    std::string program;
    UniqueFd opened;
    uint64_t asker = 0;
    Failed failed;
    ProcessId check;
    UniqueFd check_pidfd;
    UniqueFd check_state;
    async::TimePoint until;
    async::TimerId timer{};
  };

  Status StartCheck();
  void AwaitIdle();
  void Fail(std::string why);
  Status Execute();

  async::Loop& loop_;
  Events events_;
  std::unique_ptr<Change> change_;
};

/// The check's part: reads the state at `memfd` and leaves the answer there.
Status CheckState(int memfd);

/// Takes every descriptor of `keeper` back from the next execve(2).
void KeepForChildren(const state::Keeper& keeper, bool keep);

/// The state cannot be taken: the program at `previous_fd` goes on.
/// Returns only with an error.
Status ExecutePrevious(int state_fd, int previous_fd);

}  // namespace gantry::keeper
