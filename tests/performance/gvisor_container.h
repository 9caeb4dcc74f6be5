// SPDX-License-Identifier: Apache-2.0
//
// A container in a sentry, by one of the two sides: gantry's calls, or commands of runsc.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>

#include "tests/performance/gvisor_bundle.h"
#include "tests/performance/gvisor_lab.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// What a call takes is added to its `phases`. The destructor removes what is left, as well as
/// it can: containers before their pod's root.
class GvisorContainer {
 public:
  GvisorContainer(const GvisorContainer&) = delete;
  GvisorContainer& operator=(const GvisorContainer&) = delete;
  virtual ~GvisorContainer() = default;

  /// Its bundle, and of gantry's the shim's `start`, which are not timed. Empty `pod`: it is the
  /// root of its own.
  virtual Status Prepare(const std::string& pod, bool is_image);
  virtual Status Create(Phases& phases) = 0;
  virtual Status Start(Phases& phases) = 0;
  /// Of `true`, to its exit status and until nothing of it is left.
  virtual Status Exec(Phases& phases) = 0;
  /// The same `count` times, so many at once. Units: ms, of all.
  virtual Result<double> ExecMany(int count, int at_once) = 0;
  virtual Status Stats(Phases& phases) = 0;
  virtual Status State(Phases& phases) = 0;
  /// A signal that changes nothing.
  virtual Status Kill(Phases& phases) = 0;
  /// Of one that runs: until nothing of it is left.
  virtual Status End(Phases& phases) = 0;

  /// Prepare, Create, Start.
  Status Run(const std::string& pod = "", bool is_image = false);
  Status End();

  const std::string& id() const { return id_; }

  /// Of a root of gantry's: where its sentry can be asked.
  std::string socket() const { return bundle() + "/sentry.sock"; }

 protected:
  GvisorContainer(GvisorLab& lab, std::string id) : lab_(lab), id_(std::move(id)) {}

  GvisorLab& lab() { return lab_; }

  const std::string& bundle() const { return bundle_.path(); }

 private:
  GvisorLab& lab_;
  const std::string id_;
  GvisorBundle bundle_;
};

std::unique_ptr<GvisorContainer> NewGantryContainer(GvisorLab& lab);
std::unique_ptr<GvisorContainer> NewRunscContainer(GvisorLab& lab);

/// What makes one of a side.
using NewContainer = std::unique_ptr<GvisorContainer> (*)(GvisorLab&);

/// The root of a pod of each side.
struct GvisorPods {
  explicit GvisorPods(GvisorLab& lab)
      : ours(NewGantryContainer(lab)), peer(NewRunscContainer(lab)) {}

  Status Run();
  Status End();

  std::unique_ptr<GvisorContainer> ours;
  std::unique_ptr<GvisorContainer> peer;
};

}  // namespace gantry::bench
