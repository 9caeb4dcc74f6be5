// SPDX-License-Identifier: Apache-2.0
//
// How the end of a process of a sentry is kept and told: into a file of the bundle first, so
// that the sentry's answer can be let go, then to the core.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/gvisor/pod.h"
#include "plugins/gvisor/sentry/exit_wait.h"

namespace gantry::gvisor {

/// What is known of a process.
struct KnownProcess {
  /// In the sentry; 0: a container's init.
  int32_t pid = 0;
  std::optional<ExitStatus> exit{};
  /// Of a container's init: that is why it has ended.
  bool out_of_memory = false;

  /// Replaces the file. Errors: as `ReplaceFile`.
  Status Write(const std::string& path) const;
  /// Errors: kNotFound: no file; kInternal: something else is in it.
  static Result<KnownProcess> Read(const std::string& path);
};

/// Tells the core, as long as the object it is about is there. Thread: any.
class EndReport {
 public:
  explicit EndReport(ProcessContext& context) : context_(&context) {}

  /// Of a container's init.
  explicit EndReport(ContainerContext& container)
      : context_(&container.init()), container_(&container) {}

  /// `out_of_memory`: that is why its container has ended. Again: nothing.
  void Tell(ExitStatus exit, bool out_of_memory = false);
  /// Tells what is known already. False: it is not known.
  bool TellKnown(const KnownProcess& known);
  /// Its `Process` is being destroyed.
  void Retire();
  bool told() const;
  bool out_of_memory() const;

 private:
  /// Guards what follows; held while the core takes note.
  mutable std::mutex mutex_;
  ProcessContext* context_;
  /// Null: it is an exec.
  ContainerContext* container_ = nullptr;
  bool told_ = false;
  bool out_of_memory_ = false;
};

struct EndPlan {
  std::shared_ptr<Pod> pod;
  /// Of the `KnownProcess`.
  std::string path;
  /// Of the question's connection, in the store.
  std::string name;
  int32_t pid = 0;
  /// A container whose init this is. Empty: it is an exec.
  std::string container{};
  /// Its processes do not end with their init, which is none of their pid namespace: what is
  /// left of them is killed.
  bool leaves_processes = false;
  /// Of that container. Null: it has none.
  std::shared_ptr<HostProcess> gofer{};
};

ExitWait::Ended TellEnd(std::shared_ptr<EndReport> report, EndPlan plan);

}  // namespace gantry::gvisor
