// SPDX-License-Identifier: Apache-2.0
//
// What comes on stdin of the shim's `start`.
#include "core/shim/bootstrap.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {

void FuzzOne(std::string_view input) {
  const shim::Bootstrap bootstrap = shim::ParseBootstrap(input, "c1", "default");
  Require(bootstrap.version == 0 || bootstrap.version == 3, "there are two forms");
  Require(bootstrap.version == 3 || bootstrap.grpc_address.empty(),
          "an Any says nothing about containerd");
  const shim::Bootstrap other = shim::ParseBootstrap(input, "c1", "other");
  Require(bootstrap.version == 0 || other.version == 0, "it is for one namespace only");
}

}  // namespace gantry::fuzz
