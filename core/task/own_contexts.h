// SPDX-License-Identifier: Apache-2.0
//
// What backends are lent beside their sandboxes: a context for what is the backend's own, such
// as sandboxes that wait for somebody to ask for one.
//
// Its processes have names at the keeper, so the engine after this one finds them. It keeps
// none: those that a sandbox has taken over are held by that by then, the others are killed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/async/co.h"
#include "core/task/parts.h"

namespace gantry {
struct BackendHandler;
}

namespace gantry::backend {
class Context;
}

namespace gantry::task {

class BackendCalls;

/// Thread: loop.
class OwnContexts {
 public:
  OwnContexts(const Parts& parts, BackendCalls& calls);

  OwnContexts(const OwnContexts&) = delete;
  OwnContexts& operator=(const OwnContexts&) = delete;
  ~OwnContexts();

  /// To be called once for each backend, when it has been loaded. One that fails here is logged.
  async::Task<void> Attach(BackendRef backend);

  /// All sandboxes have been taken up: ends what engines before this one had spawned for
  /// backends and no sandbox holds.
  void EndLeft();

 private:
  std::vector<BackendHandler> HandlersOf(const std::string& backend) const;

  const Parts& parts_;
  BackendCalls& calls_;
  /// As long as the engine, as backends are.
  std::vector<std::unique_ptr<backend::Context>> contexts_;
};

}  // namespace gantry::task
