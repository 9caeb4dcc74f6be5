// SPDX-License-Identifier: Apache-2.0
//
// Bytes through a container's stdout: a program in it writes as fast as it can,
// we read as containerd's clients do, 32 KiB at a time.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/os/unix_socket.h"
#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr size_t kReadBytes = 32768;
constexpr size_t kWriteBytes = 65536;
constexpr double kMib = 1 << 20;
constexpr double kGib = 1 << 30;
constexpr uint64_t kStreamBytes = uint64_t{1} << 30;
/// Nothing that copies a gigabyte is as quick; a timer that fires meanwhile is.
constexpr double kNoCopyMs = 2;
constexpr int kSilenceMs = 20000;

struct Flow {
  double seconds = 0;
  double cpu_ms = 0;
};

/// Reads all of the stream; time and processor time count from the first read
/// to the last byte, so that neither start nor end is in them.
Result<Flow> ReadStream(const Lab& lab, const Side& side, int fd) {
  const std::vector<pid_t> pids = Processes(lab, side);
  std::vector<char> buffer(kReadBytes);
  pollfd polled{fd, POLLIN, 0};
  if (poll(&polled, 1, kSilenceMs) != 1) {
    return Fail(Code::kDeadlineExceeded, "read the container's stdout: nothing comes");
  }
  GANTRY_CHECK_OK(os::SetNonBlocking(fd, false));
  Flow flow;
  double cpu = 0;
  Clock::time_point begin;
  for (uint64_t done = 0; done < kStreamBytes;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      return Fail(Code::kInternal, "read the container's stdout: it ended after {} bytes", done);
    }
    if (done == 0) {
      cpu = CpuMilliseconds(pids);
      begin = Clock::now();
    }
    done += static_cast<uint64_t>(got);
  }
  flow.seconds = MillisecondsSince(begin) / 1000;
  flow.cpu_ms = CpuMilliseconds(pids) - cpu;
  return flow;
}

Result<Phases> OneStream(Lab& lab, const Side& side) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Run({"/bin/bench", "--write", std::to_string(kStreamBytes)}));
  GANTRY_TRY(const Flow flow, ReadStream(lab, side, instance.stdio().out().get()));
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  Phases phases;
  phases.Add("rate", static_cast<double>(kStreamBytes) / kMib / flow.seconds);
  phases.Add("cpu", flow.cpu_ms / (static_cast<double>(kStreamBytes) / kGib));
  return phases;
}

}  // namespace

Status StdoutRows(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = lab.Gantry("runc");
  const Side peer = lab.Stock("runc");
  const int rounds = std::clamp(extent.rounds / 3, 1, 10);
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, rounds, [&] { return OneStream(lab, ours); },
                                  [&] { return OneStream(lab, peer); }));
  report.Add(Row{
      .id = "stdout",
      .what = "container's stdout to a reader of 32 KiB",
      .unit = "MiB/s",
      .ours = pair.ours.MedianOf("rate"),
      .peer = pair.peer.MedianOf("rate"),
      .target = "",
      .met = {}}.RatioAtLeast(3));
  report.Add(Row{
      .id = "stdout-cpu",
      .what = "processor time of gantry, of the stock shim, while it flows",
      .unit = "ms/GiB",
      .ours = pair.ours.MedianOf("cpu"),
      .peer = pair.peer.MedianOf("cpu"),
      .target = "",
      .met = {}}.AtMost(kNoCopyMs));
  return {};
}

int WriteBytes(uint64_t bytes) {
  const std::vector<char> buffer(kWriteBytes, 'x');
  while (bytes > 0) {
    const ssize_t put =
        write(STDOUT_FILENO, buffer.data(), std::min<uint64_t>(bytes, buffer.size()));
    if (put < 0 && errno != EINTR) {
      return 1;
    }
    bytes -= static_cast<uint64_t>(std::max<ssize_t>(put, 0));
  }
  return 0;
}

}  // namespace gantry::bench
