// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/life.h"

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "tests/performance/instance.h"

namespace gantry::bench {
namespace {

/// Of an instance that is prepared.
Result<Phases> Live(Instance& instance) {
  Phases phases;
  GANTRY_TRY(const double start, instance.StartShim());
  phases.Add("exec start", start);
  GANTRY_CHECK_OK(Timed(phases, "Create", [&]() -> Status {
    GANTRY_CHECK_OK(instance.Connect());
    return instance.Create();
  }));
  GANTRY_CHECK_OK(Timed(phases, "Start", [&] { return instance.Start(); }));
  GANTRY_CHECK_OK(Timed(phases, "Wait", [&] { return instance.Wait(0); }));
  GANTRY_CHECK_OK(Timed(phases, "Delete", [&] { return instance.Delete(); }));
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_TRY(const double end, instance.DeleteShim());
  phases.Add("exec delete", end);
  return phases;
}

using Instances = std::vector<std::unique_ptr<Instance>>;

/// One of those who take the next until there is none.
Status TakeLives(const Instances& instances, std::atomic<size_t>& next) {
  for (size_t i = next++; i < instances.size(); i = next++) {
    GANTRY_CHECK_OK(Live(*instances[i]));
  }
  return {};
}

}  // namespace

Result<Phases> OneLife(Lab& lab, const Side& side, const std::vector<std::string>& argv) {
  Instance instance(lab, side);
  GANTRY_CHECK_OK(instance.Prepare(argv));
  return Live(instance);
}

Result<double> ManyLives(Lab& lab, const Side& side, const std::vector<std::string>& argv,
                         int count, int at_once) {
  Instances instances;
  for (int i = 0; i < count; ++i) {
    // Names are given out by one thread.
    instances.push_back(std::make_unique<Instance>(lab, side));
    GANTRY_CHECK_OK(instances.back()->Prepare(argv));
  }
  const auto begin = Clock::now();
  std::atomic<size_t> next = 0;
  std::vector<std::future<Status>> takers;
  for (int i = 0; i < at_once; ++i) {
    takers.push_back(std::async(std::launch::async, [&] { return TakeLives(instances, next); }));
  }
  Status all;
  for (auto& taker : takers) {
    if (Status one = taker.get(); !one && all) {
      all = std::move(one);
    }
  }
  const double took = MillisecondsSince(begin);
  GANTRY_CHECK_OK(all);
  return took;
}

}  // namespace gantry::bench
