// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/climb.h"

#include <memory>
#include <set>

#include "tests/harness/host.h"
#include "tests/performance/figures.h"
#include "tests/performance/instance.h"

namespace gantry::bench {
namespace {

Status OneMore(Lab& lab, const Side& side, const std::vector<std::string>& argv,
               std::vector<std::unique_ptr<Instance>>& instances) {
  instances.push_back(std::make_unique<Instance>(lab, side));
  return instances.back()->Run(argv);
}

std::vector<pid_t> Pids(const Lab& lab, const Side& side, Whose whose) {
  std::vector<pid_t> pids = Processes(lab, side);
  if (whose == Whose::kSide) {
    return pids;
  }
  std::set<pid_t> all(pids.begin(), pids.end());
  for (const e2e::HostProcess& process : e2e::ProcessesInCgroup("/" + lab.ns() + "/")) {
    all.insert(process.pid);
  }
  return {all.begin(), all.end()};
}

}  // namespace

Result<Memory> Climb(Lab& lab, const Side& side, const std::vector<std::string>& argv,
                     Whose whose) {
  const auto settled = [&] { return SettledPssKib([&] { return Pids(lab, side, whose); }); };
  Memory memory;
  std::vector<std::unique_ptr<Instance>> instances;
  // What is opened or allocated once and kept is there after the first.
  GANTRY_CHECK_OK(OneMore(lab, side, argv, instances));
  GANTRY_CHECK_OK(instances.back()->End());
  instances.clear();
  memory.before = settled();
  for (const int count : {1, Memory::kSome, Memory::kMost}) {
    while (static_cast<int>(instances.size()) < count) {
      GANTRY_CHECK_OK(OneMore(lab, side, argv, instances));
    }
    memory.at[count] = settled();
  }
  for (const auto& instance : instances) {
    GANTRY_CHECK_OK(instance->End());
  }
  memory.after = settled();
  return memory;
}

}  // namespace gantry::bench
