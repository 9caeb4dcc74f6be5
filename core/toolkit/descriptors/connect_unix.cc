// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <chrono>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/connect_unix.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry {
namespace {

/// Between two tries where the listener's queue is full: nothing tells when it is not (unix(7)).
constexpr std::chrono::milliseconds kFullQueuePause{2};

}  // namespace

Result<UniqueFd> ConnectUnixBy(const std::string& path, Deadline deadline) {
  std::string address = path;
  UniqueFd folder;
  if (const size_t slash = path.rfind('/');
      path.size() > kMaxSocketPath && slash != std::string::npos) {
    folder.reset(open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) {
      return FailErrno(errno, "open the folder of socket '{}'", path);
    }
    address = Format("/proc/self/fd/{}/{}", folder.get(), path.substr(slash + 1));
  }
  if (address.size() > kMaxSocketPath) {
    return FailErrno(ENAMETOOLONG, "connect to socket '{}'", path);
  }
  while (true) {
    auto connected = ConnectUnix(address);
    if (connected || connected.error().sys_errno != EAGAIN) {
      return connected;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Fail(Code::kDeadlineExceeded, "connect to socket '{}': its listener takes nobody",
                  path);
    }
    poll(nullptr, 0, static_cast<int>(kFullQueuePause.count()));
  }
}

}  // namespace gantry
