// SPDX-License-Identifier: Apache-2.0
//
// What gantry and its helpers hold for a machine beside its VMM: the engine's and the keeper's
// part, the vsock device and virtiofsd, of which the guest's own memory, which they map, is none.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/harness/host.h"
#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

constexpr double kKibPerMib = 1024;

/// Proportional set size without what is mapped of the guest's memory, in KiB.
/// Source: proc(5), smaps; QEMU, backends/hostmem-memfd.c.
double WithoutTheGuests(pid_t pid) {
  const std::string text = e2e::ReadText("/proc/" + std::to_string(pid) + "/smaps");
  double sum = 0;
  bool is_guests = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.contains('-') && line.contains(" r")) {
      is_guests = line.contains("memory-backend-memfd");
    } else if (line.starts_with("Pss:") && !is_guests) {
      sum += std::atof(line.c_str() + 4);
    }
  }
  return sum;
}

/// Of one machine more. Units: KiB.
struct Held {
  /// Keeper and engine.
  double gantry = 0;
  double vsock = 0;
  double virtiofsd = 0;

  double All() const { return gantry + vsock + virtiofsd; }
};

double Helpers(const Lab& lab, const char* name) {
  double sum = 0;
  for (const pid_t keeper : Processes(lab, VmmSide(lab))) {
    for (const e2e::HostProcess& helper : e2e::Processes([&](const e2e::HostProcess& process) {
           return process.parent == keeper && process.name.contains(name);
         })) {
      sum += WithoutTheGuests(helper.pid);
    }
  }
  return sum;
}

Held Now(const Lab& lab) {
  return {.gantry = SettledPssKib(lab, VmmSide(lab)),
          .vsock = Helpers(lab, "gantry-vsock"),
          .virtiofsd = Helpers(lab, "virtiofsd")};
}

Row HeldRow(const std::string& id, const std::string& what, double kib, double limit) {
  return Row{.id = id,
             .what = "what a second machine holds beside its VMM: " + what,
             .unit = "MiB",
             .ours = kib / kKibPerMib,
             .peer = {},
             .target = "",
             .met = {}}
      .AtMost(limit);
}

}  // namespace

Status VmmMemoryRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  const Side side = VmmSide(lab);
  lab.EndGantry(side);
  Instance first(lab, side);
  GANTRY_CHECK_OK(first.Run({"sleep", "1000"}));
  const Held one = Now(lab);
  Instance second(lab, side);
  GANTRY_CHECK_OK(second.Run({"sleep", "1000"}));
  const Held two = Now(lab);
  GANTRY_CHECK_OK(second.End());
  GANTRY_CHECK_OK(first.End());
  const double all = two.All() - one.All();
  report.Add(HeldRow("vmm-host-memory", "gantry, vsock device, virtiofsd", all, 2));
  report.Add(HeldRow("vmm-host-memory-block", "the same without virtiofsd",
                     all - (two.virtiofsd - one.virtiofsd), 0.5));
  return {};
}

}  // namespace gantry::bench
