// SPDX-License-Identifier: Apache-2.0
//
// containerd-shim-gantry-v1: what containerd executes. It lives for one call;
// everything that lasts is the keeper's.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/link/paths.h"
#include "core/os/standard_streams.h"
#include "core/shim/answers.h"
#include "core/shim/arguments.h"
#include "core/shim/containerd_release.h"
#include "core/shim/features.h"
#include "core/shim/shim.h"

namespace gantry::shim {
namespace {

constexpr size_t kMaxInputBytes = 16U << 20;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<std::string> WorkingDirectory() {
  // glibc allocates. NOLINTNEXTLINE(clang-analyzer-unix.StdCLibraryFunctions)
  char* const path = getcwd(nullptr, 0);
  if (path == nullptr) {
    return FailErrno(errno, "find the working directory");
  }
  std::string text(path);
  std::free(path);
  return text;
}

Result<std::string> Run(const std::vector<std::string>& all) {
  GANTRY_TRY(const Arguments arguments, ParseArguments(all));
  if (arguments.version) {
    return VersionAnswer(all.front());
  }
  if (arguments.info) {
    // What came with it is of no use, or cut short: then nothing is promised.
    return InfoAnswer(arguments.handler,
                      AskFeatures(arguments.handler, os::ReadInput(kMaxInputBytes)));
  }
  Surroundings around;
  GANTRY_TRY(around.bundle, WorkingDirectory());
  around.run_dir = link::RunDir();
  around.has_max_version = std::getenv("MAX_SHIM_VERSION") != nullptr;
  around.ttrpc_address = Environment("TTRPC_ADDRESS");
  if (arguments.action == "delete") {
    return Delete(arguments, around);
  }
  // The program that runs, also where its file has been replaced.
  around.containerd_major = ContainerdMajor("/proc/" + std::to_string(getppid()) + "/exe");
  GANTRY_TRY(around.input, os::ReadInput(kMaxInputBytes));
  return Start(arguments, around);
}

int Main(int argc, char** argv) {
  const auto answer = Run({argv, argv + argc});
  const Status printed =
      answer ? os::Print(STDOUT_FILENO, *answer) : std::unexpected(answer.error());
  if (printed) {
    return EXIT_SUCCESS;
  }
  IgnoreError(os::Print(STDERR_FILENO, "gantry: " + printed.error().message + "\n"),
              "there is no other place to say it");
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace gantry::shim

int main(int argc, char** argv) { return gantry::shim::Main(argc, argv); }
