// SPDX-License-Identifier: Apache-2.0
//
// `cloud-hypervisor` as gantry starts it: its API on a socket that it inherits or makes, checked
// against the double's tables, in front of a guest of QEMU's.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include <gantry/number.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/vmm/doubles/cloud_hypervisor_guest.h"
#include "tests/vmm/doubles/command_line.h"
#include "tests/vmm_doubles/cloud_hypervisor_double.h"

namespace gantry::test {
namespace {

/// "fd=3", "path=/run/s", "/run/s".
Result<UniqueFd> ListenerOf(const std::string& socket) {
  if (socket.starts_with("fd=")) {
    GANTRY_TRY(const int64_t number, ParseNumber(socket.substr(3)));
    UniqueFd fd(static_cast<int>(number));
    // Whoever it starts does not have it.
    if (fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
      return FailErrno(errno, "use '{}'", socket);
    }
    return fd;
  }
  return ListenUnix(socket.starts_with("path=") ? socket.substr(5) : socket);
}

int Main(int argc, char** argv) {
  const CommandLine line = ReadCommandLine(
      argc, argv, {"--api-socket", "--seccomp", "--event-monitor", "--log-file"}, {"--version"});
  if (line.flags.contains("--version")) {
    std::puts("cloud-hypervisor v53.0.0 (gantry's double)");
    return 0;
  }
  if (!line.wrong.empty() || !line.values.contains("--api-socket")) {
    std::fprintf(stderr, "cloud-hypervisor: wrong word: '%s'\n", line.wrong.c_str());
    return 1;
  }
  Result<UniqueFd> listener = ListenerOf(line.Value("--api-socket"));
  if (!listener) {
    std::fprintf(stderr, "cloud-hypervisor: %s\n", listener.error().message.c_str());
    return 1;
  }
  CloudHypervisorGuest guest;
  const CloudHypervisorDouble vmm(
      std::move(*listener),
      [&](const std::string& action, const nlohmann::json& body, std::vector<UniqueFd>& fds) {
        return guest.Do(action, body, fds);
      },
      [] { _exit(0); });
  for (;;) {
    pause();
  }
}

}  // namespace
}  // namespace gantry::test

int main(int argc, char** argv) { return gantry::test::Main(argc, argv); }
