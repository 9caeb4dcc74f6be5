// SPDX-License-Identifier: Apache-2.0
//
// A guest more in the container of one, against what gantry itself takes for a native program
// in crun's container: crun cannot execute a module.
#include "tests/performance/exec_target.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {

Status WasmExecRow(Lab& lab, const Extent& extent, Report& report) {
  ExecTarget ours(lab, WasmSide(lab));
  ExecTarget native(lab, lab.Gantry("crun"));
  GANTRY_CHECK_OK(ours.Run(WasmThatSleeps()));
  GANTRY_CHECK_OK(native.Run({"sleep", "100000"}));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return ours.OneExec(WasmThatEnds()); },
                 [&] { return native.OneExec({"true"}); }));
  GANTRY_CHECK_OK(ours.End());
  GANTRY_CHECK_OK(native.End());
  report.Add(Row{
      .id = "wasm-exec",
      .what = "Exec, Start, Wait, Delete of a module in a guest's container; exec-crun's own "
              "figure (as peer)",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.5));
  report.AddPhases("wasm-exec", pair);
  return {};
}

}  // namespace gantry::bench
