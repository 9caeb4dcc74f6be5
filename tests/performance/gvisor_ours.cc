// SPDX-License-Identifier: Apache-2.0
//
// gantry's calls, over its sockets, as containerd makes them.
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gantry/protowire.h>

#include "tests/performance/bundle.h"
#include "tests/performance/gvisor_container.h"
#include "tests/performance/instance.h"

namespace gantry::bench {
namespace {

class GantryContainer : public GvisorContainer {
 public:
  /// An instance finds a name for itself.
  GantryContainer(GvisorLab& lab, std::unique_ptr<Instance> instance)
      : GvisorContainer(lab, instance->id()), instance_(std::move(instance)) {}

  Status Prepare(const std::string& pod, bool is_image) override {
    GANTRY_CHECK_OK(GvisorContainer::Prepare(pod, is_image));
    instance_->PrepareIn(bundle());
    GANTRY_TRY(true_spec_, ProcessSpec(lab().lab().default_spec(), {"/bin/true"}));
    GANTRY_CHECK_OK(instance_->StartShim());
    return {};
  }

  Status Create(Phases& phases) override {
    return Timed(phases, "Create", [&]() -> Status {
      GANTRY_CHECK_OK(instance_->Connect());
      return instance_->Create();
    });
  }

  Status Start(Phases& phases) override {
    return Timed(phases, "Start", [&] { return instance_->Start(); });
  }

  Status Exec(Phases& phases) override { return ExecOver(*instance_, phases); }

  Result<double> ExecMany(int count, int at_once) override {
    std::vector<std::unique_ptr<Instance>> connections;
    for (int i = 0; i < at_once; ++i) {
      connections.push_back(std::make_unique<Instance>(lab().lab(), lab().side()));
      GANTRY_CHECK_OK(connections.back()->ConnectTo(*instance_));
    }
    std::vector<Status> ends(connections.size());
    std::atomic<int> left = count;
    const auto begin = Clock::now();
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < connections.size(); ++i) {
        threads.emplace_back([&, i] {
          Phases untimed;
          while (ends[i] && left-- > 0) {
            ends[i] = ExecOver(*connections[i], untimed);
          }
        });
      }
    }
    const double took = MillisecondsSince(begin);
    for (const Status& end : ends) {
      GANTRY_CHECK_OK(end);
    }
    return took;
  }

  Status Stats(Phases& phases) override { return Ask("Stats", phases); }

  Status State(Phases& phases) override { return Ask("State", phases); }

  Status Kill(Phases& phases) override {
    return Timed(phases, "Kill", [&] { return instance_->Kill(SIGWINCH); });
  }

  Status End(Phases& phases) override {
    constexpr uint32_t kKilled = 128 + SIGKILL;
    GANTRY_CHECK_OK(Timed(phases, "Kill", [&] { return instance_->Kill(); }));
    GANTRY_CHECK_OK(Timed(phases, "Wait", [&] { return instance_->Wait(kKilled); }));
    GANTRY_CHECK_OK(Timed(phases, "Delete", [&] { return instance_->Delete(); }));
    GANTRY_CHECK_OK(instance_->Shutdown());
    GANTRY_CHECK_OK(instance_->DeleteShim());
    return {};
  }

 private:
  Status ExecOver(Instance& instance, Phases& phases) {
    const Stdio none;
    return instance.Exec("x" + std::to_string(execs_++), true_spec_, none, phases);
  }

  Status Ask(const std::string& method, Phases& phases) {
    ProtoWriter request;
    request.Text(1, id());
    return Timed(phases, method, [&]() -> Status {
      GANTRY_CHECK_OK(instance_->Call(method, request.str()));
      return {};
    });
  }

  std::unique_ptr<Instance> instance_;
  std::string true_spec_;
  std::atomic<int> execs_ = 0;
};

}  // namespace

std::unique_ptr<GvisorContainer> NewGantryContainer(GvisorLab& lab) {
  return std::make_unique<GantryContainer>(lab, std::make_unique<Instance>(lab.lab(), lab.side()));
}

}  // namespace gantry::bench
