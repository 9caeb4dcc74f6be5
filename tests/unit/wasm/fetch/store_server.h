// SPDX-License-Identifier: Apache-2.0
//
// A containerd as far as its store goes: the three services, over gRPC on a UNIX socket, with what
// a `FakeStore` has.
#pragma once

#include <memory>
#include <string>

#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {

class StoreServer {
 public:
  /// Answers calls of the namespace `ns` alone.
  StoreServer(FakeStore& store, const std::string& address, const std::string& ns);
  ~StoreServer();

 private:
  struct Services;
  std::unique_ptr<Services> services_;
};

}  // namespace gantry::wasm::fetch
