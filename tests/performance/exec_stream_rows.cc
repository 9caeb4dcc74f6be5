// SPDX-License-Identifier: Apache-2.0
//
// Bytes through the stdout of a process that is executed in a container: through a pipe,
// and through a terminal.
#include <algorithm>

#include "tests/performance/instance.h"
#include "tests/performance/rows.h"
#include "tests/performance/stream.h"

namespace gantry::bench {
namespace {

/// What is executed, and how it is called in the report.
struct Stream {
  std::string row;
  std::string what;
  uint64_t bytes = 0;
  bool terminal = false;
};

/// A container that sleeps, and how many processes it has been given.
struct Target {
  Target(Lab& lab, const Side& measured) : side(measured), instance(lab, measured) {}

  const Side side;
  Instance instance;
  int count = 0;
};

Result<Phases> OneStream(Lab& lab, Target& target, const Stream& stream) {
  GANTRY_TRY(const std::string spec,
             ProcessSpec(lab.default_spec(),
                         {"/bin/bench", "--write", std::to_string(stream.bytes)}, stream.terminal));
  const std::string exec_id = "x" + std::to_string(target.count++);
  Stdio stdio;
  GANTRY_CHECK_OK(stdio.Make(lab.bundles() + "/io-" + target.instance.id() + exec_id));
  Phases phases;
  Phases calls;
  GANTRY_CHECK_OK(target.instance.BeginExec(exec_id, spec, stdio, stream.terminal, calls));
  GANTRY_CHECK_OK(
      ReadStream(lab, target.side, stdio.out().get(), stream.bytes, stream.what, phases));
  GANTRY_CHECK_OK(target.instance.FinishExec(exec_id, calls));
  return phases;
}

Status StreamRows(Lab& lab, const Extent& extent, Report& report, const Stream& stream) {
  Target ours(lab, lab.Gantry("runc"));
  Target peer(lab, lab.Stock("runc"));
  GANTRY_CHECK_OK(ours.instance.Run({"sleep", "100000"}));
  GANTRY_CHECK_OK(peer.instance.Run({"sleep", "100000"}));
  const int rounds = std::clamp(extent.rounds / 3, 1, 10);
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, rounds, [&] { return OneStream(lab, ours, stream); },
                                  [&] { return OneStream(lab, peer, stream); }));
  GANTRY_CHECK_OK(ours.instance.End());
  GANTRY_CHECK_OK(peer.instance.End());
  report.Add(Row{
      .id = stream.row,
      .what = stream.what + " to a reader of 32 KiB",
      .unit = "MiB/s",
      .ours = pair.ours.MedianOf("rate"),
      .peer = pair.peer.MedianOf("rate"),
      .target = "",
      .met = {}}.RatioAtLeast(1));
  report.Add(Row{.id = stream.row + "-cpu",
                 .what = "processor time of gantry, of the stock shim, while it flows",
                 .unit = "ms/GiB",
                 .ours = pair.ours.MedianOf("cpu"),
                 .peer = pair.peer.MedianOf("cpu"),
                 .target = "",
                 .met = {}});
  return {};
}

}  // namespace

Status ExecStdoutRows(Lab& lab, const Extent& extent, Report& report) {
  return StreamRows(lab, extent, report,
                    {.row = "exec-stdout",
                     .what = "an exec's stdout, a pipe,",
                     .bytes = uint64_t{1} << 30,
                     .terminal = false});
}

Status ExecTtyRows(Lab& lab, const Extent& extent, Report& report) {
  return StreamRows(lab, extent, report,
                    {.row = "exec-tty",
                     .what = "an exec's terminal",
                     .bytes = uint64_t{1} << 27,
                     .terminal = true});
}

}  // namespace gantry::bench
