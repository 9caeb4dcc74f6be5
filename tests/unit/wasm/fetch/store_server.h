// SPDX-License-Identifier: Apache-2.0
//
// A containerd as far as its store goes: its services, over gRPC on a UNIX socket, with what
// a `FakeStore` has.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {

/// For what must come; only what never comes is waited for to its limit.
inline constexpr std::chrono::milliseconds kLong = std::chrono::minutes(2);

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
