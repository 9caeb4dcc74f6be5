// SPDX-License-Identifier: Apache-2.0
//
// From Start to the first byte of a guest whose module has been compiled before.
#include "tests/performance/instance.h"
#include "tests/performance/output.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

Result<Phases> OneStart(Lab& lab, const Side& side) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Prepare(WasmThatSpeaks()));
  GANTRY_CHECK_OK(instance.StartShim());
  GANTRY_CHECK_OK(instance.Connect());
  GANTRY_CHECK_OK(instance.Create());
  Phases phases;
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(instance.SendStart());
  GANTRY_CHECK_OK(AwaitOutput(instance.stdio(), instance.id()));
  phases.Add("first byte", MillisecondsSince(begin));
  GANTRY_CHECK_OK(instance.Receive());
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return phases;
}

}  // namespace

Status WasmStartRow(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = WasmSide(lab);
  const Side peer = WasmPeer(lab);
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds, [&] { return OneStart(lab, ours); },
                                  [&] { return OneStart(lab, peer); }));
  report.Add(Row{
      .id = "wasm-start",
      .what = "Start to the guest's first byte, its module compiled before",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.1));
  return {};
}

}  // namespace gantry::bench
