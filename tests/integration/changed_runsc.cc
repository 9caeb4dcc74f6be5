// SPDX-License-Identifier: Apache-2.0
//
// A runsc whose internal command `boot` takes other arguments than gantry gives it: the real one,
// which is `runsc.real` beside it, in all but that. Where there is a file
// `runsc.hangs`, its `create` does all and does not come to an end.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace {

/// What runsc says where its log is.
int RefuseToBoot(std::span<char*> arguments) {
  constexpr std::string_view kLog = "--log-fd=";
  for (const std::string_view one : arguments) {
    if (one.starts_with(kLog)) {
      dprintf(std::atoi(one.data() + kLog.size()), "{\"msg\":\"boot has changed\"}");
    }
  }
  constexpr int kFailure = 128;
  return kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::span<char*> arguments(argv + 1, static_cast<size_t>(argc - 1));
  std::string_view verb;
  for (const std::string_view one : arguments) {
    if (!one.starts_with('-')) {
      verb = one;
      break;
    }
  }
  if (verb == "boot") {
    return RefuseToBoot(arguments);
  }
  const bool hangs = verb == "create" && std::filesystem::exists(self + ".hangs");
  if (hangs && fork() != 0) {
    wait(nullptr);
    pause();
  }
  execv((self + ".real").c_str(), argv);
  std::perror("run the real runsc");
  return 1;
}
