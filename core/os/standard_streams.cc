// SPDX-License-Identifier: Apache-2.0
#include "core/os/standard_streams.h"

#include <unistd.h>

#include <cerrno>
#include <vector>

namespace gantry::os {

Result<std::string> ReadInput(size_t max_bytes) {
  constexpr size_t kPiece = 16384;
  std::string input;
  std::vector<char> buffer(kPiece);
  while (isatty(STDIN_FILENO) == 0) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got > 0) {
      input.append(buffer.data(), static_cast<size_t>(got));
    } else if (got == 0 || errno == EBADF) {
      break;
    } else if (errno != EINTR) {
      return FailErrno(errno, "read the options from stdin");
    }
    if (input.size() > max_bytes) {
      return Fail(Code::kInvalidArgument, "read the options from stdin: more than {} bytes",
                  max_bytes);
    }
  }
  return input;
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

}  // namespace gantry::os
