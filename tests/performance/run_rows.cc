// SPDX-License-Identifier: Apache-2.0
//
// What a user sees: `ctr run --rm` of a program that does nothing, and how many
// programs were executed for it.
#include <algorithm>

#include "tests/performance/ctr_run.h"
#include "tests/performance/execution_counter.h"
#include "tests/performance/figures.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

Status RunRow(Lab& lab, const Extent& extent, Report& report, const std::string& oci,
              double limit) {
  GANTRY_TRY(const Pair pair, CompareCtrRuns(lab, lab.Gantry(oci), lab.Stock("runc"), CtrProgram(),
                                             extent.warm(), extent.rounds));
  report.Add(Row{
      .id = "run-" + oci,
      .what = "ctr run --rm true, " + oci + " against runc",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(limit));
  return {};
}

/// Executions of one run, the median of a few; names of the last one's.
Result<double> Executions(Lab& lab, const Side& side, const e2e::Node& node, int rounds,
                          std::vector<std::string>& names) {
  std::vector<double> counts;
  GANTRY_CHECK_OK(OneCtrRun(lab, side, node, CtrProgram()));
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> roots{ContainerdOf(lab)};
    if (!side.stock) {
      roots.push_back(node.Keeper().pid);
      roots.push_back(node.Engine().pid);
    }
    ExecutionCounter counter(roots);
    GANTRY_CHECK_OK(counter.Start());
    GANTRY_CHECK_OK(OneCtrRun(lab, side, node, CtrProgram()));
    GANTRY_TRY(names, counter.Finish());
    // One of them is the workload itself; ctr is no child of these.
    counts.push_back(static_cast<double>(names.size()) - 1);
  }
  return Median(counts);
}

}  // namespace

Status RunRuncRow(Lab& lab, const Extent& extent, Report& report) {
  return RunRow(lab, extent, report, "runc", 0.8);
}

Status RunCrunRow(Lab& lab, const Extent& extent, Report& report) {
  return RunRow(lab, extent, report, "crun", 0.65);
}

Status ExecutionRows(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  const int rounds = std::min(3, extent.rounds);
  std::vector<std::string> our_names;
  std::vector<std::string> peer_names;
  GANTRY_TRY(const double ours, Executions(lab, lab.Gantry("runc"), *node, rounds, our_names));
  GANTRY_TRY(const double peer, Executions(lab, lab.Stock("runc"), *node, rounds, peer_names));
  report.Add(Row{
      .id = "executions",
      .what = "programs executed for ctr run --rm true beyond ctr and the workload, runc",
      .unit = "execve",
      .ours = ours,
      .peer = peer,
      .target = "",
      .met = {}}.AtMost(4));
  report.AddNote(Named("executions, gantry", our_names));
  report.AddNote(Named("executions, stock", peer_names));
  return {};
}

}  // namespace gantry::bench
