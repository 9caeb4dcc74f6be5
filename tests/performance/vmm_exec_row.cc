// SPDX-License-Identifier: Apache-2.0
//
// An exec in a machine that runs, for the record: its floor is a round trip over the vsock device
// and a fork in the guest, which tests/vmm/vsock measures.
#include "tests/performance/exec_target.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {

Status VmmExecRow(Lab& lab, const Extent& extent, Report& report) {
  ExecTarget target(lab, VmmSide(lab));
  GANTRY_CHECK_OK(target.Run({"sleep", "1000"}));
  Phases phases;
  for (int round = 0; round < extent.warm() + extent.rounds; ++round) {
    GANTRY_TRY(const Phases one, target.OneExec({"true"}));
    if (round >= extent.warm()) {
      phases.Append(one);
    }
  }
  GANTRY_CHECK_OK(target.End());
  report.Add(Row{.id = "vmm-exec",
                 .what = "Exec, Start, Wait, Delete of a process that ends at once",
                 .unit = "ms",
                 .ours = phases.MedianTotal(),
                 .peer = {},
                 .target = "",
                 .met = {}});
  return {};
}

}  // namespace gantry::bench
