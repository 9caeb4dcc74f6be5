// SPDX-License-Identifier: Apache-2.0
//
// The rows of WebAssembly: gantry's wasm backend against the stock shim with crun and WasmEdge.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/report.h"
#include "tests/performance/rows.h"

namespace gantry::bench {

struct WasmGroup {
  std::vector<std::string> rows;
  Status (*measure)(Lab&, const Extent&, Report&);
  /// Its peer is the stock shim with crun and WasmEdge.
  bool needs_peer = true;
};

const std::vector<WasmGroup>& WasmGroups();

/// Where the backend is not built, a note says so; without the peer the rows say what it needs.
Status MeasureWasm(Lab& lab, const WasmGroup& group, const Extent& extent, Report& report);

/// wasm-start
Status WasmStartRow(Lab& lab, const Extent& extent, Report& report);
/// wasm-life; wasm-batch
Status WasmLifeRow(Lab& lab, const Extent& extent, Report& report);
Status WasmBatchRow(Lab& lab, const Extent& extent, Report& report);
/// wasm-run
Status WasmRunRow(Lab& lab, const Extent& extent, Report& report);
/// wasm-pod
Status WasmPodRow(Lab& lab, const Extent& extent, Report& report);
/// wasm-first, wasm-compile
Status WasmFirstRows(Lab& lab, const Extent& extent, Report& report);
/// wasm-memory-100, wasm-slope
Status WasmMemoryRows(Lab& lab, const Extent& extent, Report& report);
/// wasm-http, wasm-http-p99
Status WasmHttpRows(Lab& lab, const Extent& extent, Report& report);
/// wasm-exec
Status WasmExecRow(Lab& lab, const Extent& extent, Report& report);
/// wasm-cpu, wasm-cpu-matmul, wasm-cpu-sieve, wasm-cpu-fib
Status WasmCpuRows(Lab& lab, const Extent& extent, Report& report);

}  // namespace gantry::bench
