// SPDX-License-Identifier: Apache-2.0
//
// What idle containers cost: PSS of everything that a side keeps running for
// them, without the containers' own processes.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr int kMost = 100;
constexpr int kSome = 10;

struct Memory {
  double before = 0;
  std::map<int, double> at;  ///< By number of containers.
  double after = 0;

  double Slope() const { return (at.at(kMost) - at.at(kSome)) / (kMost - kSome); }
};

Status OneMore(Lab& lab, const Side& side, std::vector<std::unique_ptr<Instance>>& instances) {
  instances.push_back(std::make_unique<Instance>(lab, side));
  return instances.back()->Run({"sleep", "100000"});
}

Result<Memory> Climb(Lab& lab, const Side& side) {
  Memory memory;
  std::vector<std::unique_ptr<Instance>> instances;
  // What is opened or allocated once and kept is there after the first.
  GANTRY_CHECK_OK(OneMore(lab, side, instances));
  GANTRY_CHECK_OK(instances.back()->End());
  instances.clear();
  memory.before = SettledPssKib(lab, side);
  for (const int count : {1, kSome, kMost}) {
    while (static_cast<int>(instances.size()) < count) {
      GANTRY_CHECK_OK(OneMore(lab, side, instances));
    }
    memory.at[count] = SettledPssKib(lab, side);
  }
  for (const auto& instance : instances) {
    GANTRY_CHECK_OK(instance->End());
  }
  memory.after = SettledPssKib(lab, side);
  return memory;
}

Row MemoryRow(const std::string& id, const std::string& what, double ours, double peer) {
  return {
      .id = id, .what = what, .unit = "KiB", .ours = ours, .peer = peer, .target = "", .met = {}};
}

}  // namespace

Status MemoryRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  lab.EndGantry(lab.Gantry("runc"));
  GANTRY_TRY(const Memory ours, Climb(lab, lab.Gantry("runc")));
  GANTRY_TRY(const Memory peer, Climb(lab, lab.Stock("runc")));
  for (const int count : {1, kSome, kMost}) {
    const std::string number = std::to_string(count);
    Row row =
        MemoryRow("memory-" + number,
                  "PSS with " + number + (count == 1 ? " idle container" : " idle containers"),
                  ours.at.at(count), peer.at.at(count));
    report.Add(count == kMost ? std::move(row).RatioAtMost(1.0 / 55) : std::move(row));
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
