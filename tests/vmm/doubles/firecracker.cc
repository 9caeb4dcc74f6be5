// SPDX-License-Identifier: Apache-2.0
//
// `firecracker` as gantry or its jailer starts it: its API on a socket that it makes, checked
// against the double's tables, in front of a guest of QEMU's.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/vmm/doubles/command_line.h"
#include "tests/vmm/doubles/firecracker_guest.h"
#include "tests/vmm_doubles/firecracker_double.h"

namespace gantry::test {
namespace {

/// Source: firecracker, src/vmm/src/lib.rs, FcExitCode.
constexpr int kWrongWords = 153;

/// The jailer's double cannot change the root, since QEMU would not be there: it says which it is.
std::string JailsRoot() {
  const char* const root = std::getenv("GANTRY_DOUBLE_ROOT");  // NOLINT(concurrency-mt-unsafe)
  return root == nullptr ? "" : root;
}

int Main(int argc, char** argv) {
  const CommandLine line =
      ReadCommandLine(argc, argv,
                      {"--id", "--api-sock", "--start-time-us", "--start-time-cpu-us",
                       "--parent-cpu-time-us", "--log-path", "--level", "--seccomp-filter"},
                      {"--enable-pci", "--version", "--no-seccomp"});
  if (line.flags.contains("--version")) {
    std::puts("Firecracker v1.17.0 (gantry's double)");
    return 0;
  }
  if (!line.wrong.empty()) {
    std::fprintf(stderr, "firecracker: wrong word: '%s'\n", line.wrong.c_str());
    return kWrongWords;
  }
  const std::string root = JailsRoot();
  const std::string socket = root + line.Value("--api-sock", "/run/firecracker.socket");
  if (access(socket.c_str(), F_OK) == 0) {
    std::fprintf(stderr, "firecracker: '%s' is there already\n", socket.c_str());
    return 1;
  }
  FirecrackerGuest guest(root);
  const FirecrackerDouble vmm(
      socket, line.flags.contains("--enable-pci"),
      [&](const std::string& request, const nlohmann::json& body, std::vector<UniqueFd>& fds) {
        return guest.Do(request, body, fds);
      });
  for (;;) {
    pause();
  }
}

}  // namespace
}  // namespace gantry::test

int main(int argc, char** argv) { return gantry::test::Main(argc, argv); }
