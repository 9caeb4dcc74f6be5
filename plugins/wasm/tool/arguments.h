// SPDX-License-Identifier: Apache-2.0
//
// The words of `gantryctl wasm`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/wasm/cache/artifacts.h"
#include "plugins/wasm/options.h"

namespace gantry::wasm::tool {

struct Arguments {
  /// cache, compile or clean.
  std::string command;
  /// What is to be compiled: files, or images.
  std::vector<std::string> what;
  std::string directory = CacheOptions().directory;
  bool json = false;
  bool help = false;
  /// containerd's socket for gRPC, and its namespace.
  std::string address = "/run/containerd/containerd.sock";
  std::string ns = "default";
  /// Of an image with several modules: which one, as a container's first argument is.
  std::string program;
  std::chrono::seconds limit = Options().compile_limit;
  uint64_t memory = Options().compile_memory;
  uint64_t max_module_bytes = Options().max_module_bytes;
  std::chrono::days unused{30};
};

/// Errors: kInvalidArgument with the word that is wrong. Thread: any. Blocks: never.
Result<Arguments> Parse(const std::vector<std::string>& words);

const char* HelpText();

}  // namespace gantry::wasm::tool
