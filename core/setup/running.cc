// SPDX-License-Identifier: Apache-2.0
//
// containerd reads its files once, when it starts. So what it has is told by when it started: its
// process is the one at the other end of its socket.
#include "core/setup/running.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <vector>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry::setup {
namespace {

using std::chrono::nanoseconds;

nanoseconds NsOf(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

/// Since the epoch. Errors: kNotFound.
Result<nanoseconds> StartedAt(HostPid pid) {
  GANTRY_TRY(const uint64_t ticks, StartTimeOf(pid));
  timespec now{};
  timespec since_boot{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return NsOf(now) - NsOf(since_boot) + nanoseconds(ticks * (1'000'000'000 / per_second));
}

/// What --config says; empty: nothing.
std::string ConfigOf(const std::string& command) {
  std::vector<std::string> words;
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find('\0', at), command.size());
    words.push_back(command.substr(at, end - at));
    at = end + 1;
  }
  for (size_t i = 1; i < words.size(); ++i) {
    if ((words[i] == "--config" || words[i] == "-c") && i + 1 < words.size()) {
      return words[i + 1];
    }
    for (const std::string_view option : {"--config=", "-c="}) {
      if (words[i].starts_with(option)) {
        return words[i].substr(option.size());
      }
    }
  }
  return "";
}

}  // namespace

Result<std::string> CheckRunning(const Layout& layout, const std::string& file) {
  const auto socket = ConnectUnix(layout.socket);
  if (!socket) {
    return Fail(Code::kUnavailable, "no containerd runs at '{}': {}", layout.socket,
                socket.error().message);
  }
  GANTRY_TRY(const PeerCredentials peer, PeerOf(socket->get()));
  const HostPid pid(peer.pid);
  GANTRY_TRY(const std::string command,
             ReadFile(Format("/proc/{}/cmdline", peer.pid), size_t{64} << 10));
  if (const std::string config = ConfigOf(command); !config.empty() && config != layout.config) {
    return Fail(Code::kFailedPrecondition,
                "containerd (pid {}) runs with '{}', not with '{}': name that with "
                "--containerd-config",
                peer.pid, config, layout.config);
  }
  struct stat status{};
  if (stat(file.c_str(), &status) != 0) {
    return FailErrno(errno, "look at '{}'", file);
  }
  GANTRY_TRY(const nanoseconds started, StartedAt(pid));
  // The kernel tells starts in ticks.
  if (started + std::chrono::milliseconds(10) < NsOf(status.st_ctim)) {
    return Fail(Code::kFailedPrecondition,
                "containerd (pid {}) runs since before '{}' was changed, and does not know it: {}; "
                "pods go on meanwhile",
                peer.pid, file, layout.restart);
  }
  return Format("containerd (pid {}) was started after '{}' was changed\n", peer.pid, file);
}

}  // namespace gantry::setup
