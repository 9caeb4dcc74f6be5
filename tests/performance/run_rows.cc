// SPDX-License-Identifier: Apache-2.0
//
// What a user sees: `ctr run --rm` of a program that does nothing, and how many
// programs were executed for it.
#include <algorithm>

#include "tests/performance/execution_counter.h"
#include "tests/performance/figures.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr const char* kImage = "docker.io/library/busybox:gantry";

std::vector<std::string> RunWords(Lab& lab, const Side& side, const e2e::Node& node) {
  std::vector<std::string> words{"run",        "--rm",       "--runtime",
                                 side.runtime, "--fifo-dir", node.fifo_dir()};
  if (side.stock) {
    words.insert(words.end(), {"--runc-binary", side.oci});
  }
  words.insert(words.end(), {kImage, lab.NewId(side), "true"});
  return words;
}

Result<Phases> OneRun(Lab& lab, const Side& side, const e2e::Node& node) {
  const std::vector<std::string> words = node.CtrWords(RunWords(lab, side, node));
  Phases phases;
  const auto begin = Clock::now();
  const e2e::Output output = e2e::RunProgram(words);
  phases.Add("ctr run", MillisecondsSince(begin));
  if (output.status != 0) {
    return Fail(Code::kInternal, "ctr run with {}: {}", side.runtime, output.Text());
  }
  return phases;
}

Status RunRow(Lab& lab, const Extent& extent, Report& report, const std::string& oci,
              double limit) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  const Side ours = lab.Gantry(oci);
  const Side peer = lab.Stock("runc");
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return OneRun(lab, ours, *node); },
                 [&] { return OneRun(lab, peer, *node); }));
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
  GANTRY_CHECK_OK(OneRun(lab, side, node));
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> roots{ContainerdOf(lab)};
    if (!side.stock) {
      roots.push_back(node.Keeper().pid);
      roots.push_back(node.Engine().pid);
    }
    ExecutionCounter counter(roots);
    GANTRY_CHECK_OK(counter.Start());
    GANTRY_CHECK_OK(OneRun(lab, side, node));
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
