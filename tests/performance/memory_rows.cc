// SPDX-License-Identifier: Apache-2.0
//
// What idle containers cost: PSS of everything that a side keeps running for
// them, without the containers' own processes.
#include <string>
#include <utility>
#include <vector>

#include "tests/performance/climb.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

Row MemoryRow(const std::string& id, const std::string& what, double ours, double peer) {
  return {
      .id = id, .what = what, .unit = "KiB", .ours = ours, .peer = peer, .target = "", .met = {}};
}

}  // namespace

Status MemoryRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  const std::vector<std::string> sleep{"sleep", "100000"};
  lab.EndGantry(lab.Gantry("runc"));
  GANTRY_TRY(const Memory ours, Climb(lab, lab.Gantry("runc"), sleep, Whose::kSide));
  GANTRY_TRY(const Memory peer, Climb(lab, lab.Stock("runc"), sleep, Whose::kSide));
  for (const auto& [count, size] : ours.at) {
    const std::string number = std::to_string(count);
    Row row =
        MemoryRow("memory-" + number,
                  "PSS with " + number + (count == 1 ? " idle container" : " idle containers"),
                  size, peer.at.at(count));
    report.Add(count == Memory::kMost ? std::move(row).RatioAtMost(1.0 / 55) : std::move(row));
  }
  report.Add(MemoryRow("memory-slope", "PSS of each further one, from 10 to 100", ours.Slope(),
                       peer.Slope())
                 .AtMost(30));
  report.Add(MemoryRow("memory-back", "gantry's PSS after the 100, against before (as peer)",
                       ours.after, ours.before)
                 .RatioAtMost(1.1));
  return {};
}

}  // namespace gantry::bench
