// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <string>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pid_of.h>

namespace gantry {

Result<pid_t> PidOf(int pidfd) {
  constexpr size_t kMaxInfo = 4096;
  constexpr std::string_view kKey = "\nPid:\t";
  GANTRY_TRY(const std::string text, ReadFile(Format("/proc/self/fdinfo/{}", pidfd), kMaxInfo));
  const size_t at = text.find(kKey);
  pid_t pid = 0;
  if (at != text.npos) {
    std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), pid);
  }
  if (pid < 0) {
    return Fail(Code::kNotFound, "look at a pidfd: its process has ended");
  }
  if (pid == 0) {
    return Fail(Code::kInvalidArgument, "look at descriptor {}: not a pidfd of a process here",
                pidfd);
  }
  return pid;
}

}  // namespace gantry
