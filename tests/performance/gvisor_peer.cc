// SPDX-License-Identifier: Apache-2.0
//
// runsc's command line, as its own shim calls it.
#include "tests/performance/gvisor_container.h"

namespace gantry::bench {
namespace {

class RunscContainer : public GvisorContainer {
 public:
  explicit RunscContainer(GvisorLab& lab) : GvisorContainer(lab, lab.NewId(true)) {}

  ~RunscContainer() override {
    if (made_) {
      IgnoreError(lab().runsc().Run(Delete()), "the run's end looks again");
    }
  }

  Status Create(Phases& phases) override {
    made_ = true;
    return Timed("Create", {"create", "--bundle", bundle(), id()}, phases);
  }

  Status Start(Phases& phases) override { return Timed("Start", {"start", id()}, phases); }

  Status Exec(Phases& phases) override { return Timed("Exec", ExecTrue(), phases); }

  Result<double> ExecMany(int count, int at_once) override {
    return lab().runsc().RunMany(ExecTrue(), count, at_once);
  }

  Status Stats(Phases& phases) override {
    return Timed("Stats", {"events", "--stats", id()}, phases);
  }

  Status State(Phases& phases) override { return Timed("State", {"state", id()}, phases); }

  Status Kill(Phases& phases) override { return Timed("Kill", {"kill", id(), "WINCH"}, phases); }

  Status End(Phases& phases) override {
    GANTRY_CHECK_OK(Timed("Delete", Delete(), phases));
    made_ = false;
    return {};
  }

 private:
  Words ExecTrue() const { return {"exec", id(), "/bin/true"}; }

  Words Delete() const { return {"delete", "--force", id()}; }

  Status Timed(const std::string& name, const Words& command, Phases& phases) {
    GANTRY_TRY(const double took, lab().runsc().Run(command));
    phases.Add(name, took);
    return {};
  }

  bool made_ = false;
};

}  // namespace

std::unique_ptr<GvisorContainer> NewRunscContainer(GvisorLab& lab) {
  return std::make_unique<RunscContainer>(lab);
}

}  // namespace gantry::bench
