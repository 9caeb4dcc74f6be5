// SPDX-License-Identifier: Apache-2.0
//
// A container's life as the shim sees it, without containerd around it.
#include "tests/performance/instance.h"
#include "tests/performance/life.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

Status LifeRow(Lab& lab, const Extent& extent, Report& report, const std::string& oci,
               double limit) {
  const Side ours = lab.Gantry(oci);
  const Side peer = lab.Stock("runc");
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return OneLife(lab, ours, {"true"}); },
                 [&] { return OneLife(lab, peer, {"true"}); }));
  const std::string id = "life-" + oci;
  report.Add(Row{
      .id = id,
      .what = "start, Create, Start, Wait, Delete, delete of 'true', " + oci + " against runc",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(limit));
  report.AddPhases(id, pair);
  return {};
}

Result<Phases> OneStart(Lab& lab, const Side& side) {
  Phases phases;
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Prepare({"true"}));
  GANTRY_TRY(const double start, instance.StartShim());
  phases.Add("start", start);
  GANTRY_CHECK_OK(instance.Connect());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return phases;
}

}  // namespace

Status LifeRuncRow(Lab& lab, const Extent& extent, Report& report) {
  return LifeRow(lab, extent, report, "runc", 0.65);
}

Status LifeCrunRow(Lab& lab, const Extent& extent, Report& report) {
  return LifeRow(lab, extent, report, "crun", 0.45);
}

Status ShimStartRow(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = lab.Gantry("runc");
  const Side peer = lab.Stock("runc");
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds, [&] { return OneStart(lab, ours); },
                                  [&] { return OneStart(lab, peer); }));
  report.Add(Row{
      .id = "shim-start",
      .what = "exec to exit of the shim's start",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.AtMost(3));
  return {};
}

}  // namespace gantry::bench
