// SPDX-License-Identifier: Apache-2.0
//
// Bytes through a container's stdout: a program in it writes as fast as it can,
// we read as containerd's clients do, 32 KiB at a time.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tests/performance/instance.h"
#include "tests/performance/rows.h"
#include "tests/performance/stream.h"
#include "tests/performance/streaming_client.h"

namespace gantry::bench {
namespace {

constexpr size_t kWriteBytes = 65536;
constexpr uint64_t kStreamBytes = uint64_t{1} << 30;
/// Nothing that copies a gigabyte is as quick; a timer that fires meanwhile is.
constexpr double kNoCopyMs = 2;

Result<Phases> OneStream(Lab& lab, const Side& side) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Run({"/bin/bench", "--write", std::to_string(kStreamBytes)}));
  Phases phases;
  GANTRY_CHECK_OK(ReadStream(lab, side, instance.stdio().out().get(), kStreamBytes,
                             "the container's stdout", phases));
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return phases;
}

/// The same over a stream of the sandbox's socket.
Result<Phases> OneSandboxStream(Lab& lab, const Side& side) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Prepare({"/bin/bench", "--write", std::to_string(kStreamBytes)}));
  GANTRY_CHECK_OK(instance.StartShim());
  const std::string id = instance.id() + "-stdout";
  GANTRY_TRY(StreamingClient client, StreamingClient::Open(instance.socket(), id));
  instance.StreamOutput(id);
  GANTRY_CHECK_OK(instance.Connect());
  GANTRY_CHECK_OK(instance.Create());
  GANTRY_CHECK_OK(instance.Start());
  Phases phases;
  const auto some = [&]() -> Result<size_t> {
    GANTRY_TRY(const std::string data, client.Read());
    return data.size();
  };
  GANTRY_CHECK_OK(MeasureStream(lab, side, kStreamBytes, "the container's stream", some, phases));
  GANTRY_TRY(const std::string rest, client.Read());
  if (!rest.empty()) {
    return Fail(Code::kInternal, "read the container's stream: {} bytes too many", rest.size());
  }
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return phases;
}

}  // namespace

Status StdoutStreamingRow(Lab& lab, const Extent& extent, Report& report) {
  const Side side = lab.Gantry("runc");
  const int rounds = std::clamp(extent.rounds / 3, 1, 10);
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, rounds, [&] { return OneSandboxStream(lab, side); },
                                  [&] { return OneStream(lab, side); }));
  report.Add(Row{.id = "stdout-streaming",
                 .what = "container's stdout over a stream of its sandbox; as a fifo",
                 .unit = "MiB/s",
                 .ours = pair.ours.MedianOf("rate"),
                 .peer = pair.peer.MedianOf("rate"),
                 .target = "",
                 .met = {}});
  report.AddPhases("stdout-streaming", pair, {"cpu"});
  return {};
}

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
