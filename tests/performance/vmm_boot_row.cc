// SPDX-License-Identifier: Apache-2.0
//
// A machine's boot. The peer is tests/vmm/vsock/bare_boot.cc: QEMU as the driver starts it, with a
// vsock device and nothing else, and a first process that says hello.
#include <algorithm>
#include <cstdlib>

#include "tests/harness/program.h"
#include "tests/performance/instance.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

/// A round takes seconds.
constexpr int kRounds = 5;

Result<Phases> OurBoot(Lab& lab) {
  Instance instance(lab, VmmSide(lab));
  GANTRY_CHECK_OK(instance.Prepare({"sleep", "1000"}));
  GANTRY_CHECK_OK(instance.StartShim());
  GANTRY_CHECK_OK(instance.Connect());
  Phases phases;
  GANTRY_CHECK_OK(Timed(phases, "Create", [&] { return instance.Create(); }));
  GANTRY_CHECK_OK(Timed(phases, "Start", [&] { return instance.Start(); }));
  GANTRY_CHECK_OK(instance.End());
  return phases;
}

Result<Phases> BareBoot(const Lab& lab) {
  // It may have to find out first whether KVM works.
  const e2e::Output output =
      e2e::RunProgram({lab.programs() + "/../tests/vmm_bare_boot"}, {}, e2e::kLong);
  if (output.status != 0) {
    return Fail(Code::kInternal, "run vmm_bare_boot: {}", output.Text());
  }
  Phases phases;
  phases.Add("hello", std::strtod(output.out.c_str(), nullptr));
  return phases;
}

}  // namespace

Status VmmBootRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(const Pair pair, Alternate(
                                  1, std::min(extent.rounds, kRounds), [&] { return OurBoot(lab); },
                                  [&] { return BareBoot(lab); }));
  report.Add(Row{
      .id = "vmm-boot",
      .what = "Create and Start of a pod's first container; peer: the same QEMU to a hello",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(1.1));
  report.AddPhases("vmm-boot", pair);
  return {};
}

}  // namespace gantry::bench
