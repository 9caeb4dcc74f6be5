// SPDX-License-Identifier: Apache-2.0
//
// What idle guests cost with all that is kept running for them: an engine in each container is
// the price of a module, so it counts on both sides.
#include "tests/performance/climb.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {

Status WasmMemoryRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  lab.EndGantry(WasmSide(lab));
  GANTRY_TRY(const Memory ours,
             Climb(lab, WasmSide(lab), WasmThatSleeps(), Whose::kSideAndContainers));
  GANTRY_TRY(const Memory peer,
             Climb(lab, WasmPeer(lab), WasmThatSleeps(), Whose::kSideAndContainers));
  report.Add(Row{
      .id = "wasm-memory-100",
      .what = "PSS with 100 idle guests, theirs too",
      .unit = "KiB",
      .ours = ours.at.at(Memory::kMost),
      .peer = peer.at.at(Memory::kMost),
      .target = "",
      .met = {}}.RatioAtMost(1.0 / 50));
  report.Add(Row{
      .id = "wasm-slope",
      .what = "PSS of each further one, from 10 to 100",
      .unit = "KiB",
      .ours = ours.Slope(),
      .peer = peer.Slope(),
      .target = "",
      .met = {}}.AtMost(220));
  return {};
}

}  // namespace gantry::bench
