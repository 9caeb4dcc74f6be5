// SPDX-License-Identifier: Apache-2.0
//
// The container that a sentry is booted with: one that stands alone, or a pod's pause
// container. Its end is the sentry's, so the core gets it from the keeper.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugins/gvisor/container/container.h"
#include "plugins/gvisor/launch/launcher.h"
#include "plugins/gvisor/launch/sentry_start.h"

namespace gantry::gvisor {

/// Thread: workers, as `Container`.
class RootContainer : public GvisorContainer {
 public:
  using GvisorContainer::GvisorContainer;

  /// Boots the sentry. On failure nothing is left.
  Status Create(const ContainerRequest& request, const Launcher& launcher);
  /// After a restart of the engine. `blob`: what was saved, or empty. Errors: kAborted: it was
  /// never finished, and what there was of it has been removed.
  Status Recover(const ContainerRequest& request, const std::string& blob);

  Result<bool> HasStarted() override;
  Status Start() override;
  Status Kill(uint32_t signal) override;
  Status KillAll(uint32_t signal) override;
  Status ConsoleSignal(uint32_t signal) override;
  Status Delete() override;

 protected:
  std::optional<ContainerEnd> End() const override;

 private:
  /// `volumes`: those of the pod, where they are known.
  Status ReadRequest(const ContainerRequest& request,
                     std::optional<std::vector<Volume>> volumes = {});
  Status ReadAgain(const ContainerRequest& request);
  GoferProcess FindGofer();

  Spec spec_;
  /// The directory that it is restored from; or empty.
  std::string checkpoint_;
  GoferProcess gofer_;
};

/// Hands the sandbox its network and starts its root: of any kind of sandbox. `checkpoint`: the
/// directory that it is to be restored from in place of that; empty: none.
/// Errors: as `Sentry::StartRoot`. What had been taken is given back when it is removed.
Status StartPod(Pod& pod, const std::string& checkpoint = {});

}  // namespace gantry::gvisor
