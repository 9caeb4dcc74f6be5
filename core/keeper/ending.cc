// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/ending.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/last_resort.h"
#include "core/link/run_dir.h"
#include "core/os/process.h"

namespace gantry::keeper {

bool Ending::GoOn(const link::LastResort& last_resort) {
  // Also while the command runs: a runtime may have started something in the meantime.
  return KillOnce(last_resort) || (last_resort.cleanup && Cleanup(*last_resort.cleanup)) ||
         CleanOnce(last_resort);
}

void Ending::GiveUp(const link::LastResort& last_resort) {
  if (running_ && last_resort.cleanup && !HasEnded(running_->pidfd.get())) {
    KillGroup(running_->pidfd);
    KillProcess(running_->pidfd);
    calls_.failed(Error{Code::kDeadlineExceeded,
                        0,
                        "end a container with '" + last_resort.cleanup->argv.front() +
                            "': not done in time, killed",
                        {}});
  }
  running_.reset();
  CleanOnce(last_resort);
}

bool Ending::IsLocked(const std::string& folder) {
  if (!lock_) {
    lock_.reset(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  return lock_ && flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool Ending::Cleanup(const link::Command& command) {
  if (!begun_) {
    if (command.argv.empty() || IsLocked(command.cwd)) {
      return !command.argv.empty();
    }
    begun_ = true;
    Status safe = link::CheckProgram(command.argv.front());
    auto started = safe ? calls_.spawn(command) : std::unexpected(std::move(safe).error());
    if (!started) {
      calls_.failed(std::move(started).error().Within("end a container"));
      return false;
    }
    running_ = std::move(*started);
  }
  return running_ && !HasEnded(running_->pidfd.get());
}

os::SpawnRequest RequestOf(const link::Command& command) {
  os::SpawnRequest request;
  request.argv = command.argv;
  request.env = command.env;
  request.cwd = Exists(command.cwd) ? command.cwd : "/";
  request.new_session = true;
  // It may be an OCI runtime that writes to hooks.
  request.ignore_sigpipe = true;
  return request;
}

}  // namespace gantry::keeper
