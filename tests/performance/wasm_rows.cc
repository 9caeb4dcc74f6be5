// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/wasm_rows.h"

#include "tests/performance/wasm_lab.h"

namespace gantry::bench {

const std::vector<WasmGroup>& WasmGroups() {
  static const std::vector<WasmGroup> groups{
      {{"wasm-memory-100", "wasm-slope"}, WasmMemoryRows},
      {{"wasm-start"}, WasmStartRow},
      {{"wasm-life"}, WasmLifeRow},
      {{"wasm-run"}, WasmRunRow},
      {{"wasm-pod"}, WasmPodRow},
      {{"wasm-first", "wasm-compile"}, WasmFirstRows},
      {{"wasm-batch"}, WasmBatchRow},
      {{"wasm-http", "wasm-http-p99"}, WasmHttpRows, false},
      {{"wasm-exec"}, WasmExecRow, false},
      {{"wasm-cpu", "wasm-cpu-matmul", "wasm-cpu-sieve", "wasm-cpu-fib"}, WasmCpuRows, false},
  };
  return groups;
}

Status MeasureWasm(Lab& lab, const WasmGroup& group, const Extent& extent, Report& report) {
  if (const std::string missing = WithoutWasm(lab); !missing.empty()) {
    report.AddNote(group.rows.front() + ": skipped: " + missing);
    return {};
  }
  if (const std::string missing = group.needs_peer ? WithoutWasmPeer() : ""; !missing.empty()) {
    for (const std::string& row : group.rows) {
      report.AddNotHere(row, missing);
    }
    return {};
  }
  GANTRY_CHECK_OK(AddGuests(lab));
  return group.measure(lab, extent, report);
}

}  // namespace gantry::bench
