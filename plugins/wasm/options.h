// SPDX-License-Identifier: Apache-2.0
//
// What a handler or a request may set for this backend.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::wasm {

/// The second engine, by its name in `engine`.
inline constexpr const char* kWasmEdge = "wasmedge";

/// Thread: any; plain data.
struct Options {
  /// `engine`: wasmtime or wasmedge.
  std::string engine = "wasmtime";
  /// `cache_dir`: what was compiled; root's alone.
  std::string cache_dir = "/var/lib/gantry/wasm";
  /// `containerd_address`: its socket for gRPC, of images that have modules as layers. Empty: that
  /// of the sandbox's own containerd.
  std::string containerd_address;
  /// `max_module_bytes`: of a larger file nothing is read.
  uint64_t max_module_bytes = uint64_t{64} << 20;
  /// `compile.seconds` and `compile.memory`: what the compiler of one module may take.
  std::chrono::seconds compile_limit{300};
  uint64_t compile_memory = uint64_t{2} << 30;
  /// `memory`: most bytes of a linear memory, of containers that have no limit of their own.
  /// 0: none.
  uint64_t memory = 0;
  /// `network`: pod, or none.
  bool network = true;
};

/// `base` with what `json` sets; empty text sets nothing. Unknown keys are put into `unknown`;
/// without `unknown` they are an error. Errors: kInvalidArgument naming the key.
Result<Options> ParseOptions(const std::string& json, Options base,
                             std::vector<std::string>* unknown);

/// `pod` or `none`. Errors: kInvalidArgument.
Result<bool> ParseNetwork(const std::string& text);

}  // namespace gantry::wasm
