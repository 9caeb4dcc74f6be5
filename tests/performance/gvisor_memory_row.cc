// SPDX-License-Identifier: Apache-2.0
//
// What a further container of a pod costs beside its gofer and its share of the sentry: with
// gantry what keeper and engine grow by, with runsc's own shim a `runsc wait` (and a shim, which
// does not count here).
#include <memory>
#include <vector>

#include "tests/performance/figures.h"
#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

constexpr int kFurther = 20;

class Pod {
 public:
  Pod(GvisorLab& lab, NewContainer make) : lab_(lab), make_(make), root_(make(lab)) {}

  Status Run() { return root_->Run(); }

  Status Add() {
    further_.push_back(make_(lab_));
    return further_.back()->Run(root_->id());
  }

  /// That was added last.
  const std::string& id() const { return further_.back()->id(); }

  Status End() {
    for (const auto& container : further_) {
      GANTRY_CHECK_OK(container->End());
    }
    return root_->End();
  }

 private:
  GvisorLab& lab_;
  const NewContainer make_;
  std::unique_ptr<GvisorContainer> root_;
  std::vector<std::unique_ptr<GvisorContainer>> further_;
};

/// What each of `kFurther` adds to the memory of these processes, once there is one.
/// Units: KiB.
Result<double> Slope(const std::function<Status()>& add,
                     const std::function<std::vector<pid_t>()>& pids) {
  GANTRY_CHECK_OK(add());
  const double before = SettledPssKib(pids);
  for (int i = 0; i < kFurther; ++i) {
    GANTRY_CHECK_OK(add());
  }
  return (SettledPssKib(pids) - before) / kFurther;
}

Result<double> Ours(GvisorLab& lab) {
  Pod pod(lab, NewGantryContainer);
  GANTRY_CHECK_OK(pod.Run());
  GANTRY_TRY(const double slope,
             Slope([&] { return pod.Add(); }, [&] { return Processes(lab.lab(), lab.side()); }));
  GANTRY_CHECK_OK(pod.End());
  return slope;
}

Result<double> Peer(GvisorLab& lab) {
  Pod pod(lab, NewRunscContainer);
  GANTRY_CHECK_OK(pod.Run());
  std::vector<pid_t> waits;
  const auto add = [&]() -> Status {
    GANTRY_CHECK_OK(pod.Add());
    GANTRY_TRY(const pid_t wait, lab.runsc().Leave({"wait", pod.id()}));
    waits.push_back(wait);
    return {};
  };
  GANTRY_TRY(const double slope, Slope(add, [&] { return waits; }));
  GANTRY_CHECK_OK(pod.End());
  return slope;
}

}  // namespace

Status GvisorMemoryRow(GvisorLab& lab, const GvisorRelease& release, const Extent& /*extent*/,
                       Report& report) {
  GANTRY_TRY(const double ours, Ours(lab));
  GANTRY_TRY(const double peer, Peer(lab));
  report.Add(GvisorRow(release,
                       {.id = "gvisor-shim-memory",
                        .what = "PSS of gantry for each further container, gofer and sentry not "
                                "counted; of its runsc wait",
                        .unit = "KiB",
                        .ours = ours,
                        .peer = peer,
                        .target = "",
                        .met = {}},
                       1.0 / 50));
  return {};
}

}  // namespace gantry::bench
