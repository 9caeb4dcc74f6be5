// SPDX-License-Identifier: Apache-2.0
//
// What a user sees: `ctr run --rm` of a module of an image.
#include "tests/performance/ctr_run.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {

Status WasmRunRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_CHECK_OK(ImportGuests(lab));
  const CtrProgram program{.image = kWasmImage,
                           .argv = WasmThatEnds(),
                           .flags = {"--annotation", std::string(kWasmAnnotation) + "=wasm"}};
  GANTRY_TRY(const Pair pair, CompareCtrRuns(lab, WasmSide(lab), WasmPeer(lab), program,
                                             extent.warm(), extent.rounds));
  report.Add(Row{
      .id = "wasm-run",
      .what = "ctr run --rm of a guest that ends at once",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.5));
  return {};
}

}  // namespace gantry::bench
