// SPDX-License-Identifier: Apache-2.0
//
// A sentry of gantry's, asked on its control socket by this program itself: what a call takes
// without keeper and engine, which is the least that it can take with them.
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/gvisor/urpc/client.h"
#include "tests/performance/samples.h"

namespace gantry::bench {

/// How it is called among the parts of a row.
inline constexpr const char* kDirectly = "the sentry's, asked directly";

/// What each call takes is added to `phases`, as `kDirectly`. Thread: one, but `ExecMany`.
class GvisorDirect {
 public:
  GvisorDirect(std::string socket, std::string container)
      : client_(std::move(socket)), container_(std::move(container)) {}

  /// Of `true`, to its exit status.
  Status Exec(Phases& phases);
  /// The same `count` times, so many at once. Units: ms, of all.
  Result<double> ExecMany(int count, int at_once);
  Status Stats(Phases& phases);
  /// A signal that changes nothing.
  Status Kill(Phases& phases);

 private:
  Status ExecOnce();
  Status Ask(const std::string& method, const std::string& arg, Phases& phases);

  urpc::Client client_;
  const std::string container_;
};

}  // namespace gantry::bench
