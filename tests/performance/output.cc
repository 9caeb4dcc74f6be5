// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace gantry::bench {
namespace {

constexpr std::chrono::milliseconds kDeadline = std::chrono::seconds(30);

}  // namespace

Status AwaitOutput(const Stdio& stdio, const std::string& what) {
  pollfd waited{.fd = stdio.out().get(), .events = POLLIN, .revents = 0};
  if (poll(&waited, 1, static_cast<int>(kDeadline.count())) != 1) {
    return Fail(Code::kDeadlineExceeded, "read the output of {}: nothing came", what);
  }
  if ((waited.revents & POLLIN) == 0) {
    return Fail(Code::kInternal, "read the output of {}: it ended before anything came", what);
  }
  return {};
}

Result<std::string> ReadLine(const Stdio& stdio, const std::string& what) {
  std::string line;
  for (;;) {
    GANTRY_CHECK_OK(AwaitOutput(stdio, what));
    char byte = 0;
    const ssize_t got = read(stdio.out().get(), &byte, 1);
    if (got != 1) {
      return FailErrno(got < 0 ? errno : ENODATA, "read the output of {}", what);
    }
    if (byte == '\n') {
      return line;
    }
    line += byte;
  }
}

}  // namespace gantry::bench
