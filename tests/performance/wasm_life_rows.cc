// SPDX-License-Identifier: Apache-2.0
//
// A guest's life as the shim sees it, without containerd around it: one, and many at once.
#include <algorithm>

#include "tests/performance/life.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

constexpr int kLives = 200;
constexpr int kAtOnce = 8;

Result<Phases> OneBatch(Lab& lab, const Side& side) {
  GANTRY_TRY(const double took, ManyLives(lab, side, WasmThatEnds(), kLives, kAtOnce));
  Phases phases;
  phases.Add("lives", kLives / took * 1000);
  return phases;
}

}  // namespace

Status WasmLifeRow(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = WasmSide(lab);
  const Side peer = WasmPeer(lab);
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return OneLife(lab, ours, WasmThatEnds()); },
                 [&] { return OneLife(lab, peer, WasmThatEnds()); }));
  report.Add(Row{
      .id = "wasm-life",
      .what = "start, Create, Start, Wait, Delete, delete of a guest that ends at once",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.15));
  report.AddPhases("wasm-life", pair);
  return {};
}

Status WasmBatchRow(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = WasmSide(lab);
  const Side peer = WasmPeer(lab);
  GANTRY_TRY(const Pair pair,
             Alternate(
                 1, std::max(1, extent.rounds / 6), [&] { return OneBatch(lab, ours); },
                 [&] { return OneBatch(lab, peer); }));
  report.Add(Row{
      .id = "wasm-batch",
      .what = "such lives a second, 200 of them, 8 at a time",
      .unit = "lives/s",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtLeast(4));
  return {};
}

}  // namespace gantry::bench
