// SPDX-License-Identifier: Apache-2.0
//
// A pod's root: sentry, gofer and a first process.
#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

Result<Phases> OnePod(GvisorLab& lab, NewContainer make) {
  Phases phases;
  const auto pod = make(lab);
  GANTRY_CHECK_OK(pod->Prepare("", false));
  GANTRY_CHECK_OK(pod->Create(phases));
  GANTRY_CHECK_OK(pod->Start(phases));
  GANTRY_CHECK_OK(pod->End(phases));
  return phases;
}

}  // namespace

Status GvisorPodRows(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report) {
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return OnePod(lab, NewGantryContainer); },
                 [&] { return OnePod(lab, NewRunscContainer); }));
  const std::vector<std::string> begin{"Create", "Start"};
  // Of gantry three calls, of runsc one command that does as much.
  const std::vector<std::string> end{"Kill", "Wait", "Delete"};
  report.Add(GvisorRow(release,
                       {.id = "gvisor-pod",
                        .what = "Create and Start of a pod's root, cold; runsc create, start",
                        .unit = "ms",
                        .ours = pair.ours.MedianOf(begin),
                        .peer = pair.peer.MedianOf(begin),
                        .target = "",
                        .met = {}},
                       0.85));
  report.AddPhases(release.RowId("gvisor-pod"), pair, begin);
  report.Add(GvisorRow(release,
                       {.id = "gvisor-delete",
                        .what = "Kill, Wait, Delete of a pod that runs; runsc delete --force",
                        .unit = "ms",
                        .ours = pair.ours.MedianOf(end),
                        .peer = pair.peer.MedianOf(std::vector<std::string>{"Delete"}),
                        .target = "",
                        .met = {}},
                       0.4));
  report.AddPhases(release.RowId("gvisor-delete"), pair, end);
  return {};
}

}  // namespace gantry::bench
