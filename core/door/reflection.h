// SPDX-License-Identifier: Apache-2.0
//
// gRPC's server reflection (grpc.reflection.v1 and v1alpha, which have the same messages): which
// services there are, and the .proto files they are declared in.
#pragma once

#include <string>
#include <vector>

#include "core/door/descriptors.h"
#include "core/door/stream.h"

namespace gantry::door {

/// Thread: loop.
class Reflection {
 public:
  /// `services`: the full names of those that are served besides.
  Reflection(Descriptors descriptors, std::vector<std::string> services);
  Reflection(const Reflection&) = delete;
  Reflection& operator=(const Reflection&) = delete;
  ~Reflection() = default;

  /// Puts the methods into `streams`, which it outlives.
  void Register(StreamTable& streams);

  /// The answer to one request. Errors: kInvalidArgument: it is none.
  Result<std::string> Answer(const std::string& request) const;

 private:
  async::Task<Status> Serve(std::shared_ptr<Stream> stream) const;

  const Descriptors descriptors_;
  std::vector<std::string> services_;
};

}  // namespace gantry::door
