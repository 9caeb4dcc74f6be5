// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a container that runs.
#include <algorithm>
#include <utility>

#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

constexpr int kExecs = 80;
constexpr int kExecsAtOnce = 8;

using Call = Status (GvisorContainer::*)(Phases&);

Result<Phases> Once(GvisorContainer& container, Call call) {
  Phases phases;
  GANTRY_CHECK_OK((container.*call)(phases));
  return phases;
}

Result<Pair> InTurns(GvisorPods& pods, const Extent& extent, Call call) {
  return Alternate(
      extent.warm(), extent.rounds, [&] { return Once(*pods.ours, call); },
      [&] { return Once(*pods.peer, call); });
}

/// One call. `row` without its figures.
Status CallRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent, Report& report,
               Row row, Call call) {
  GvisorPods pods(lab);
  GANTRY_CHECK_OK(pods.Run());
  GANTRY_TRY(const Pair pair, InTurns(pods, extent, call));
  GANTRY_CHECK_OK(pods.End());
  row.unit = "ms";
  row.ours = pair.ours.MedianTotal();
  row.peer = pair.peer.MedianTotal();
  report.Add(GvisorRow(release, std::move(row), 1.0 / 40));
  return {};
}

Row Named(const std::string& id, const std::string& what) {
  Row row;
  row.id = id;
  row.what = what;
  return row;
}

/// Execs per second.
Result<Phases> Throughput(GvisorContainer& container) {
  GANTRY_TRY(const double took, container.ExecMany(kExecs, kExecsAtOnce));
  Phases phases;
  phases.Add("execs", kExecs * 1000.0 / took);
  return phases;
}

Status ParallelRow(GvisorPods& pods, const GvisorRelease& release, const Extent& extent,
                   Report& report) {
  const int rounds = std::max(1, extent.rounds / 3);
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, rounds, [&] { return Throughput(*pods.ours); },
                                  [&] { return Throughput(*pods.peer); }));
  Row row = Named(release.RowId("gvisor-exec-parallel"), "the same and Delete, by 8 at once");
  row.unit = "1/s";
  row.ours = pair.ours.MedianTotal();
  row.peer = pair.peer.MedianTotal();
  report.Add(release.has_targets ? std::move(row).RatioAtLeast(8) : row);
  return {};
}

}  // namespace

Status GvisorExecRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  GvisorPods pods(lab);
  GANTRY_CHECK_OK(pods.Run());
  GANTRY_TRY(const Pair pair, InTurns(pods, extent, &GvisorContainer::Exec));
  Row row = Named("gvisor-exec", "Exec, Start, Wait of 'true' in a container; runsc exec");
  row.unit = "ms";
  // To its exit status. What Delete takes is among the parts.
  row.ours = pair.ours.MedianOf(std::vector<std::string>{"Exec", "Start", "Wait"});
  row.peer = pair.peer.MedianTotal();
  report.Add(GvisorRow(release, std::move(row), 0.3));
  report.AddPhases(release.RowId("gvisor-exec"), pair);
  GANTRY_CHECK_OK(ParallelRow(pods, release, extent, report));
  return pods.End();
}

Status GvisorStatsRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  return CallRow(lab, release, extent, report, Named("gvisor-stats", "Stats; runsc events --stats"),
                 &GvisorContainer::Stats);
}

Status GvisorStateRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  return CallRow(lab, release, extent, report, Named("gvisor-state", "State; runsc state"),
                 &GvisorContainer::State);
}

Status GvisorKillRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report) {
  return CallRow(lab, release, extent, report,
                 Named("gvisor-kill", "Kill with a signal that changes nothing; runsc kill"),
                 &GvisorContainer::Kill);
}

}  // namespace gantry::bench
