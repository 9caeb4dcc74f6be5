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

Status MeasureStream(const Lab& lab, const Side& side, uint64_t bytes, const std::string& what,
                     const std::function<Result<size_t>()>& read, Phases& phases) {
  const std::vector<pid_t> pids = Processes(lab, side);
  double cpu = 0;
  Clock::time_point begin;
  for (uint64_t done = 0; done < bytes;) {
    GANTRY_TRY(const size_t got, read());
    if (got == 0) {
      return Fail(Code::kInternal, "read {}: it ended after {} bytes", what, done);
    }
    if (done == 0) {
      cpu = CpuMilliseconds(pids);
      begin = Clock::now();
    }
    done += got;
  }
  const double seconds = MillisecondsSince(begin) / 1000;
  const auto size = static_cast<double>(bytes);
  phases.Add("rate", size / kMib / seconds);
  phases.Add("cpu", (CpuMilliseconds(pids) - cpu) / (size / kGib));
  return {};
}

Status ReadStream(const Lab& lab, const Side& side, int fd, uint64_t bytes, const std::string& what,
                  Phases& phases) {
  std::vector<char> buffer(kReadBytes);
  pollfd polled{fd, POLLIN, 0};
  if (poll(&polled, 1, kSilenceMs) != 1) {
    return Fail(Code::kDeadlineExceeded, "read {}: nothing comes", what);
  }
  GANTRY_CHECK_OK(SetNonblocking(fd, false));
  const auto some = [&]() -> Result<size_t> {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    return got > 0 ? static_cast<size_t>(got) : 0;
  };
  return MeasureStream(lab, side, bytes, what, some, phases);
}

}  // namespace gantry::bench
