// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/stream.h"

#include <poll.h>
#include <unistd.h>

#include <vector>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/performance/figures.h"

namespace gantry::bench {
namespace {

constexpr size_t kReadBytes = 32768;
constexpr double kMib = 1 << 20;
constexpr double kGib = 1 << 30;
constexpr int kSilenceMs = 20000;

}  // namespace

Status ReadStream(const Lab& lab, const Side& side, int fd, uint64_t bytes, const std::string& what,
                  Phases& phases) {
  const std::vector<pid_t> pids = Processes(lab, side);
  std::vector<char> buffer(kReadBytes);
  pollfd polled{fd, POLLIN, 0};
  if (poll(&polled, 1, kSilenceMs) != 1) {
    return Fail(Code::kDeadlineExceeded, "read {}: nothing comes", what);
  }
  GANTRY_CHECK_OK(SetNonblocking(fd, false));
  double cpu = 0;
  Clock::time_point begin;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      return Fail(Code::kInternal, "read {}: it ended after {} bytes", what, done);
    }
    if (done == 0) {
      cpu = CpuMilliseconds(pids);
      begin = Clock::now();
    }
    done += static_cast<uint64_t>(got);
  }
  const double seconds = MillisecondsSince(begin) / 1000;
  const auto size = static_cast<double>(bytes);
  phases.Add("rate", size / kMib / seconds);
  phases.Add("cpu", (CpuMilliseconds(pids) - cpu) / (size / kGib));
  return {};
}

}  // namespace gantry::bench
