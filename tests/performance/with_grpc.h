// SPDX-License-Identifier: Apache-2.0
//
// Gantry as it is with `grpc.address` in its configuration, for the rows that want that.
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>

#include "tests/performance/instance.h"
#include "tests/performance/lab.h"

namespace gantry::bench {

/// Gantry is started anew, with gantry-grpc and an idle container; and without it when this ends.
class WithGrpc {
 public:
  explicit WithGrpc(Lab& lab);
  WithGrpc(const WithGrpc&) = delete;
  WithGrpc& operator=(const WithGrpc&) = delete;
  ~WithGrpc();

  /// Returns when it listens. Errors: it does not.
  Status Start();

 private:
  std::string File() const { return lab_.root() + "/gantry.yaml"; }

  Lab& lab_;
  const std::string config_;
  std::unique_ptr<Instance> instance_;
};

}  // namespace gantry::bench
