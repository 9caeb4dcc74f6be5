// SPDX-License-Identifier: Apache-2.0
//
// The two ways in which the sentry of a sandbox is started, with the gofer of its root: gantry
// starts the processes itself, or has `runsc create` do it. Which of them is decided once, when a
// sandbox is made (`RunscRegistry::GetLauncher`); all that comes later is the same for both.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/launch/gofer.h"
#include "plugins/gvisor/launch/runsc.h"
#include "plugins/gvisor/pod/pod.h"
#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

class Launcher;

struct SentryRequest {
  const Launcher& launcher;
  const Spec& spec;
  /// The root container's; empty: gantry's own root.
  std::string container;
  /// What gantry's own root is called in the sentry; empty: as the sandbox.
  std::string own_id{};
  std::string bundle;
  std::vector<std::string> cgroups{};
  std::array<UniqueFd, 3> stdio{};
  bool terminal = false;
  /// In place of the root's files: an image.
  UniqueFd image{};
};

/// One start, as far as it has come.
struct Launch {
  Pod& pod;
  /// A launcher takes its descriptors.
  SentryRequest& wanted;
  /// As `MakeBoundedLog`: the sentry's.
  const UniqueFd& log;
  const std::chrono::system_clock::time_point begun = std::chrono::system_clock::now();
  /// Where it is launched, and with what; a launcher adds what is its own to say.
  PodRecord record{};
  /// What has been started; `gofer` has no process where none is needed.
  std::shared_ptr<HostProcess> sentry{};
  Gofer gofer{};

  /// What the root is called in the sentry.
  std::string RootId() const { return record.RootId(pod.id()); }
};

/// Thread: workers; does not change.
class Launcher {
 public:
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  const Runsc& runsc() const { return *runsc_; }

  const std::shared_ptr<const Runsc>& shared_runsc() const { return runsc_; }

  /// gantry starts the processes itself: only such sandboxes may be pre-booted.
  virtual bool IsDirect() const = 0;
  /// Why it does not; empty: it does.
  virtual std::string Reason() const = 0;
  /// What a terminal is to the process that is the root.
  virtual ConsoleKind Console() const = 0;
  /// Starts the processes, and returns when the sentry can be asked. Where it fails, what `launch`
  /// has is to be ended (`EndLaunched`). Errors: any. Blocks: up to the pod's deadline for a step.
  virtual Status Start(Launch& launch) const = 0;

 protected:
  explicit Launcher(std::shared_ptr<const Runsc> runsc) : runsc_(std::move(runsc)) {}

 private:
  const std::shared_ptr<const Runsc> runsc_;
};

class DirectLauncher : public Launcher {
 public:
  explicit DirectLauncher(std::shared_ptr<const Runsc> runsc) : Launcher(std::move(runsc)) {}

  bool IsDirect() const override { return true; }

  std::string Reason() const override { return {}; }

  ConsoleKind Console() const override { return ConsoleKind::kControlling; }

  Status Start(Launch& launch) const override;
};

class CreateLauncher : public Launcher {
 public:
  CreateLauncher(std::shared_ptr<const Runsc> runsc, std::string reason)
      : Launcher(std::move(runsc)), reason_(std::move(reason)) {}

  bool IsDirect() const override { return false; }

  std::string Reason() const override { return reason_; }

  /// What `runsc create` gets as its own streams is nobody's controlling terminal.
  ConsoleKind Console() const override { return ConsoleKind::kForeign; }

  Status Start(Launch& launch) const override;

 private:
  const std::string reason_;
};

/// Ends what was started, and removes the root's writable layers.
void EndLaunched(const Launch& launch);

}  // namespace gantry::gvisor
