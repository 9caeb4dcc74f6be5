// SPDX-License-Identifier: Apache-2.0
//
// What is asked of a container that runs.
#include <algorithm>
#include <utility>

#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_direct.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

constexpr int kExecs = 80;
constexpr int kExecsAtOnce = 8;

struct Calls {
  /// What it is called among the parts.
  std::vector<std::string> parts;
  Status (GvisorContainer::*call)(Phases&);
  /// The same of the sentry itself; null: it is not asked.
  Status (GvisorDirect::*direct)(Phases&) = nullptr;
};

Result<Phases> Once(GvisorContainer& container, GvisorDirect* direct, const Calls& calls) {
  Phases phases;
  GANTRY_CHECK_OK((container.*calls.call)(phases));
  if (direct != nullptr && calls.direct != nullptr) {
    GANTRY_CHECK_OK((direct->*calls.direct)(phases));
  }
  return phases;
}

Result<Pair> InTurns(GvisorPods& pods, GvisorDirect& direct, const Extent& extent,
                     const Calls& calls) {
  return Alternate(
      extent.warm(), extent.rounds, [&] { return Once(*pods.ours, &direct, calls); },
      [&] { return Once(*pods.peer, nullptr, calls); });
}

/// One call. `row` without its figures.
Status CallRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent, Report& report,
               Row row, const Calls& calls) {
  GvisorPods pods(lab);
  GANTRY_CHECK_OK(pods.Run());
  GvisorDirect direct(pods.ours->socket(), pods.ours->id());
  GANTRY_TRY(const Pair pair, InTurns(pods, direct, extent, calls));
  GANTRY_CHECK_OK(pods.End());
  row.unit = "ms";
  row.ours = pair.ours.MedianOf(calls.parts);
  row.peer = pair.peer.MedianTotal();
  report.AddPhases(release.RowId(row.id), pair);
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

Status ParallelRow(GvisorPods& pods, GvisorDirect& direct, const GvisorRelease& release,
                   const Extent& extent, Report& report) {
  const int rounds = std::max(1, extent.rounds / 3);
  Phases directly;
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, rounds,
                                  [&]() -> Result<Phases> {
                                    GANTRY_TRY(const double took,
                                               direct.ExecMany(kExecs, kExecsAtOnce));
                                    directly.Add(kDirectly, kExecs * 1000.0 / took);
                                    return Throughput(*pods.ours);
                                  },
                                  [&] { return Throughput(*pods.peer); }));
  Row row = Named(release.RowId("gvisor-exec-parallel"), "the same and Delete, by 8 at once");
  row.unit = "1/s";
  row.ours = pair.ours.MedianTotal();
  row.peer = pair.peer.MedianTotal();
  report.AddPart(row.id, kDirectly, directly.MedianOf(kDirectly), 0);
  report.Add(release.has_targets ? std::move(row).RatioAtLeast(8) : row);
  return {};
}

}  // namespace

Status GvisorExecRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  GvisorPods pods(lab);
  GANTRY_CHECK_OK(pods.Run());
  GvisorDirect direct(pods.ours->socket(), pods.ours->id());
  const Calls calls{{"Exec", "Start", "Wait"}, &GvisorContainer::Exec, &GvisorDirect::Exec};
  GANTRY_TRY(const Pair pair, InTurns(pods, direct, extent, calls));
  Row row = Named("gvisor-exec", "Exec, Start, Wait of 'true' in a container; runsc exec");
  row.unit = "ms";
  // To its exit status. What Delete takes is among the parts.
  row.ours = pair.ours.MedianOf(calls.parts);
  row.peer = pair.peer.MedianTotal();
  report.Add(GvisorRow(release, std::move(row), 0.3));
  report.AddPhases(release.RowId("gvisor-exec"), pair);
  GANTRY_CHECK_OK(ParallelRow(pods, direct, release, extent, report));
  return pods.End();
}

Status GvisorStatsRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  return CallRow(lab, release, extent, report, Named("gvisor-stats", "Stats; runsc events --stats"),
                 {{"Stats"}, &GvisorContainer::Stats, &GvisorDirect::Stats});
}

Status GvisorStateRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  return CallRow(lab, release, extent, report, Named("gvisor-state", "State; runsc state"),
                 {{"State"}, &GvisorContainer::State});
}

Status GvisorKillRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report) {
  return CallRow(lab, release, extent, report,
                 Named("gvisor-kill", "Kill with a signal that changes nothing; runsc kill"),
                 {{"Kill"}, &GvisorContainer::Kill, &GvisorDirect::Kill});
}

}  // namespace gantry::bench
