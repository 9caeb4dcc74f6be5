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
#include "core/shim/answers.h"
#include "core/shim/arguments.h"
#include "core/shim/containerd_release.h"
#include "core/shim/features.h"
#include "core/shim/shim.h"

namespace gantry::shim {
namespace {

constexpr size_t kMaxInputBytes = 16U << 20;

/// stdin up to its end. A terminal is nobody who sends options.
Result<std::string> ReadInput() {
  std::string input;
  std::vector<char> buffer(16384);
  while (isatty(STDIN_FILENO) == 0) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got > 0) {
      input.append(buffer.data(), static_cast<size_t>(got));
    } else if (got == 0 || errno == EBADF) {
      break;
    } else if (errno != EINTR) {
      return FailErrno(errno, "read the options from stdin");
    }
    if (input.size() > kMaxInputBytes) {
      return Fail(Code::kInvalidArgument, "read the options from stdin: more than 16 MiB");
    }
  }
  return input;
}

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
    return InfoAnswer(arguments.handler, AskFeatures(arguments.handler, ReadInput()));
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
  GANTRY_TRY(around.input, ReadInput());
  return Start(arguments, around);
}

Status Print(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return FailErrno(errno, "print the answer");
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<size_t>(written));
  }
  return {};
}

int Main(int argc, char** argv) {
  const auto answer = Run({argv, argv + argc});
  const Status printed = answer ? Print(STDOUT_FILENO, *answer) : std::unexpected(answer.error());
  if (printed) {
    return EXIT_SUCCESS;
  }
  IgnoreError(Print(STDERR_FILENO, "gantry: " + printed.error().message + "\n"),
              "there is no other place to say it");
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace gantry::shim

int main(int argc, char** argv) { return gantry::shim::Main(argc, argv); }
