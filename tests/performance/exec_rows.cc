// SPDX-License-Identifier: Apache-2.0
//
// A process more in a container that runs: Exec, Start, Wait, Delete.
#include "tests/performance/exec_target.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

Status ExecRow(Lab& lab, const Extent& extent, Report& report, const std::string& oci,
               double limit) {
  ExecTarget ours(lab, lab.Gantry(oci));
  ExecTarget peer(lab, lab.Stock("runc"));
  GANTRY_CHECK_OK(ours.Run({"sleep", "100000"}));
  GANTRY_CHECK_OK(peer.Run({"sleep", "100000"}));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return ours.OneExec({"true"}); },
                 [&] { return peer.OneExec({"true"}); }));
  GANTRY_CHECK_OK(ours.End());
  GANTRY_CHECK_OK(peer.End());
  const std::string id = "exec-" + oci;
  report.Add(Row{
      .id = id,
      .what = "Exec, Start, Wait, Delete of 'true' in a container, " + oci + " against runc",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(limit));
  report.AddPhases(id, pair);
  return {};
}

}  // namespace

Status ExecRuncRow(Lab& lab, const Extent& extent, Report& report) {
  return ExecRow(lab, extent, report, "runc", 1.0);
}

Status ExecCrunRow(Lab& lab, const Extent& extent, Report& report) {
  return ExecRow(lab, extent, report, "crun", 0.35);
}

}  // namespace gantry::bench
