// SPDX-License-Identifier: Apache-2.0
//
// What operators ask the keeper, on its control socket: it answers also while no engine does. And
// the same as messages of the operator's API.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <gantry/error.h>

#include "core/link/control_messages.h"
#include "core/link/status_messages.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::link {

/// Of the run directory `dir`, whose owner is checked. Thread: any.
class KeeperCalls {
 public:
  explicit KeeperCalls(std::string dir) : dir_(std::move(dir)) {}

  /// Blocks: up to ten seconds. Errors, here and below: kUnavailable, kDeadlineExceeded.
  Result<KeeperStatus> Query() const;

  /// A newly started engine in the place of the one that runs, if any; with `no_fallback` it stays,
  /// however soon it ends. Blocks: up to half a minute. Errors: kFailedPrecondition: the new one
  /// was given up, and the old one goes on.
  Result<Upgraded> UpgradeEngine(const Upgrade& request) const;

  /// Ends an instance and forgets it, without the engine. Blocks: up to ten seconds.
  Result<Deleted> Delete(const link::Delete& request) const;

  /// The keeper becomes `program`, an absolute path. Gives its pid, which stays the same. Blocks:
  /// up to half a minute. Errors: kFailedPrecondition with the reason: the old program goes on.
  Result<int32_t> UpgradeKeeper(const std::string& program) const;

 private:
  template <class Answer, class Request>
  Result<Answer> Ask(const Request& request, int seconds) const;

  std::string dir_;
};

v1::KeeperResponse ToMessage(const KeeperStatus& status);
/// What the message has of it.
KeeperStatus FromMessage(const v1::KeeperResponse& message);

}  // namespace gantry::link
