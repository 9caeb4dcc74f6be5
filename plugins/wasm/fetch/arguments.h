// SPDX-License-Identifier: Apache-2.0
//
// The words of gantry-wasm-fetch.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/wasm/fetch/module_of.h"

namespace gantry::wasm::fetch {

struct FetchArguments {
  /// containerd's socket for gRPC: an absolute path.
  std::string address;
  /// containerd's namespace.
  std::string ns;
  ModuleRequest request;
  /// Of all calls together.
  std::chrono::milliseconds limit = std::chrono::seconds(10);
  /// Descriptors: where the answer goes, and where the module.
  int result = -1;
  int module = -1;
  /// Where the digests of all blobs go; then there is nothing but `address` and `result` beside it.
  int digests = -1;
};

const char* FetchUsage();

/// Errors: kInvalidArgument, with the word that is wrong or missing.
Result<FetchArguments> ReadFetchArguments(const std::vector<std::string>& words);

}  // namespace gantry::wasm::fetch
