// SPDX-License-Identifier: Apache-2.0
//
// A pod with a guest, through CRI: gantry's without a pause container, the stock shim's with one.
#include "tests/performance/pods.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

/// Behind HANDLER and NAME: one pod, whose container is of this image with these arguments.
std::string Rest() {
  std::string rest = std::string("1 ") + kWasmImage;
  for (const std::string& word : WasmThatSleeps()) {
    rest += " " + word;
  }
  return rest;
}

}  // namespace

Status WasmPodRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_CHECK_OK(ImportGuests(lab));
  GANTRY_TRY(Pods pods, Pods::Start(lab, kWasmImage));
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds,
                                  [&] { return pods.Timed(lab, "start", "gantry-wasm", Rest()); },
                                  [&] { return pods.Timed(lab, "start", "stock-crun", Rest()); }));
  report.Add(Row{
      .id = "wasm-pod",
      .what = "RunPodSandbox, CreateContainer, StartContainer of a guest",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.15));
  return {};
}

}  // namespace gantry::bench
