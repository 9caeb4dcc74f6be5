// SPDX-License-Identifier: Apache-2.0
//
// What compiled modules lose to native programs: tests/guests/cpu.c by clang for wasm, and by
// gcc -O2 in a container of crun's.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/performance/instance.h"
#include "tests/performance/output.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

constexpr const char* kTests[] = {"matmul", "sieve", "fib"};

/// The program says what its best of some took: only its own work counts.
Result<Phases> OneTest(Lab& lab, const Side& side, const std::string& program,
                       const std::string& test) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Run({program, test}));
  GANTRY_TRY(const std::string line, ReadLine(instance.stdio(), program + " " + test));
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  Phases phases;
  phases.Add(test, std::atof(line.c_str()));
  return phases;
}

}  // namespace

Status WasmCpuRows(Lab& lab, const Extent& extent, Report& report) {
  const Side ours = WasmSide(lab);
  const Side native = lab.Gantry("crun");
  Row worst;
  std::vector<Row> rows;
  for (const std::string test : kTests) {
    GANTRY_TRY(const Pair pair, Alternate(
                                    1, std::max(1, extent.rounds / 3),
                                    [&] { return OneTest(lab, ours, "/cpu.wasm", test); },
                                    [&] { return OneTest(lab, native, "/bin/cpu", test); }));
    const Row row{.id = "wasm-cpu-" + test,
                  .what = test + "; gcc -O2 (as peer)",
                  .unit = "ms",
                  .ours = pair.ours.MedianTotal(),
                  .peer = pair.peer.MedianTotal(),
                  .target = "",
                  .met = {}};
    if (!worst.ratio() || row.ratio() > worst.ratio()) {
      worst = row;
    }
    rows.push_back(row);
  }
  worst.id = "wasm-cpu";
  worst.what = "of these three the one that loses most: " + worst.what;
  report.Add(std::move(worst).RatioAtMost(2.1));
  for (Row& row : rows) {
    report.Add(std::move(row));
  }
  return {};
}

}  // namespace gantry::bench
