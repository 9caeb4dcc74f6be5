// SPDX-License-Identifier: Apache-2.0
//
// gantry-keeper: started by the first shim, or by a service manager. At most one
// per run directory: it holds a lock on DIR/keeper.alive for as long as it lives.
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/keeper/keeper.h"
#include "core/keeper/note.h"
#include "core/keeper/options.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"
#include "core/os/fs.h"
#include "core/os/memory.h"

namespace gantry::keeper {
namespace {

constexpr int64_t kMaxLogBytes = 1 << 20;
/// The last to be killed when the node runs out of memory, but not immune.
constexpr char kOwnOomScore[] = "-999";
constexpr char kOomFile[] = "/proc/self/oom_score_adj";
/// Descriptors that no connection may take: the store, pidfds, files.
constexpr uint64_t kReservedFds = 1024;

Result<UniqueFd> LockForLife(const std::string& run_dir) {
  const std::string path = run_dir + "/keeper.alive";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) {
    return FailErrno(errno, "open '{}'", path);
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(Code::kFailedPrecondition, "lock '{}': another keeper runs", path);
  }
  return lock;
}

Result<UniqueFd> ControlSocket(const CommandLine& line) {
  if (line.control_fd >= 0) {
    UniqueFd given(line.control_fd);
    if (fcntl(given.get(), F_SETFD, FD_CLOEXEC) != 0) {
      return FailErrno(errno, "take over control socket {}", line.control_fd);
    }
    return given;
  }
  const std::string path = line.run_dir + "/" + link::kControlSocket;
  GANTRY_CHECK_OK(RemoveFile(path));
  return ListenUnix(path);
}

/// What children get back; then sets what the keeper itself needs. Protection from the OOM
/// killer that the keeper was started with was meant for it, or for containerd, and not for
/// containers.
ChildDefaults SetUpProcess() {
  ChildDefaults defaults;
  getrlimit(RLIMIT_NOFILE, &defaults.open_files);
  IgnoreError(os::RaiseOpenFileLimit(), "the connection limit follows what there is");
  if (const auto score = ReadFile(kOomFile, 64)) {
    std::from_chars(score->data(), score->data() + score->size(), defaults.oom_score_adj);
  }
  defaults.oom_score_adj = std::max(defaults.oom_score_adj, 0);
  IgnoreError(WriteExisting(kOomFile, kOwnOomScore), "needs CAP_SYS_RESOURCE");
  defaults.umask = umask(077);
  os::IgnoreSigpipe();
  return defaults;
}

Limits LimitsHere() {
  Limits limits;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const uint64_t half = files.rlim_cur > kReservedFds ? (files.rlim_cur - kReservedFds) / 2 : 64;
  limits.connections = std::clamp<uint64_t>(half, 64, limits.connections);
  limits.connections_per_place = limits.connections / 4;
  return limits;
}

Status RedirectLog(const std::string& run_dir) {
  GANTRY_TRY(const UniqueFd log, OpenLog(run_dir + "/keeper.log", kMaxLogBytes));
  if (dup2(log.get(), STDOUT_FILENO) < 0 || dup2(log.get(), STDERR_FILENO) < 0) {
    return FailErrno(errno, "write the log to '{}/keeper.log'", run_dir);
  }
  return {};
}

Status Run(KeeperOptions options) {
  options.limits = LimitsHere();
  async::Loop loop;
  Keeper keeper(loop, std::move(options));
  GANTRY_CHECK_OK(keeper.Start());
  loop.Run();
  return {};
}

/// In the place of another program in this process.
Status TakeOver(const CommandLine& line) {
  UniqueFd memfd(line.state_fd);
  auto state = state::Read(memfd.get());
  if (!state) {
    NoteLine(state.error().message);
    return line.previous_fd < 0 ? std::unexpected(state.error())
                                : ExecutePrevious(memfd.release(), line.previous_fd);
  }
  memfd.reset();
  UniqueFd previous(line.previous_fd);
  previous.reset();
  KeepForChildren(*state, false);
  KeeperOptions options;
  options.run_dir = state->run_dir;
  options.engine = state->supervisor.path;
  options.control = UniqueFd(state->control.listener);
  options.alive = UniqueFd(state->alive);
  options.child_defaults = state->child_defaults;
  options.service_manager = state->service_manager;
  options.state = std::move(*state);
  os::IgnoreSigpipe();
  return Run(std::move(options));
}

Status Serve(CommandLine line) {
  if (line.check_state_fd >= 0) {
    return CheckState(line.check_state_fd);
  }
  if (line.state_fd >= 0) {
    return TakeOver(line);
  }
  if (line.run_dir.empty()) {
    line.run_dir = link::RunDir();
  }
  GANTRY_CHECK_OK(os::MakeDirs(line.run_dir, 0700));
  GANTRY_CHECK_OK(link::CheckRunDir(line.run_dir));
  if (line.check) {
    GANTRY_TRY(const UniqueFd alive, LockForLife(line.run_dir));
    return {};
  }
  if (!line.foreground) {
    GANTRY_CHECK_OK(RedirectLog(line.run_dir));
  }
  if (line.engine.empty()) {
    GANTRY_TRY(line.engine, link::FindProgram("gantryd"));
  }
  GANTRY_TRY(UniqueFd alive, LockForLife(line.run_dir));
  GANTRY_TRY(UniqueFd control, ControlSocket(line));
  if (chdir("/") != 0) {
    return FailErrno(errno, "change to '/'");
  }
  KeeperOptions options;
  options.child_defaults = SetUpProcess();
  options.service_manager = TakeServiceManager();
  options.run_dir = line.run_dir;
  options.engine = line.engine;
  options.control = std::move(control);
  options.alive = std::move(alive);
  return Run(std::move(options));
}

int Main(int argc, char** argv) {
  os::SaveMemory();
  // One that was executed by a descriptor has its number for a name, before Linux 6.14.
  prctl(PR_SET_NAME, "gantry-keeper");
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  auto line = ParseCommandLine(arguments);
  const Status served = line ? Serve(std::move(*line)) : std::unexpected(line.error());
  if (!served) {
    NoteLine(served.error().message);
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace gantry::keeper

int main(int argc, char** argv) { return gantry::keeper::Main(argc, argv); }
