// SPDX-License-Identifier: Apache-2.0
//
// A process more in a container that runs: Exec, Start, Wait, Delete.
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

/// A container that sleeps, and how many processes it has been given.
struct Target {
  Target(Lab& lab, const Side& side) : instance(lab, side), stdio_prefix(lab.bundles() + "/io-") {}

  Instance instance;
  std::string stdio_prefix;
  int count = 0;
};

Result<Phases> OneExec(Target& target, const std::string& spec) {
  const std::string exec_id = "x" + std::to_string(target.count++);
  Stdio stdio;
  GANTRY_CHECK_OK(stdio.Make(target.stdio_prefix + target.instance.id() + exec_id));
  Phases phases;
  GANTRY_CHECK_OK(target.instance.Exec(exec_id, spec, stdio, phases));
  return phases;
}

Status ExecRow(Lab& lab, const Extent& extent, Report& report, const std::string& oci,
               double limit) {
  GANTRY_TRY(const std::string spec, ProcessSpec(lab.default_spec(), {"true"}));
  Target ours(lab, lab.Gantry(oci));
  Target peer(lab, lab.Stock("runc"));
  GANTRY_CHECK_OK(ours.instance.Run({"sleep", "100000"}));
  GANTRY_CHECK_OK(peer.instance.Run({"sleep", "100000"}));
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds, [&] { return OneExec(ours, spec); },
                                  [&] { return OneExec(peer, spec); }));
  GANTRY_CHECK_OK(ours.instance.End());
  GANTRY_CHECK_OK(peer.instance.End());
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
