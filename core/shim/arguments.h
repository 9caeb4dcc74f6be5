// SPDX-License-Identifier: Apache-2.0
//
// How containerd calls a shim: Go-style flags (`-k v`, `-k=v`, one dash or two;
// a boolean needs no value), then the action. Source: containerd 2.3.4, pkg/shim/shim.go.
#pragma once

#include <span>
#include <string>

#include <gantry/error.h>

namespace gantry::shim {

struct Arguments {
  /// From the program's name: "wasm" of containerd-shim-gantry-wasm-v1, else "".
  std::string handler;
  std::string ns;
  std::string id;
  /// containerd's gRPC socket.
  std::string address;
  /// containerd's binary.
  std::string publish_binary;
  /// With `delete`; empty: the working directory.
  std::string bundle;
  bool debug = false;
  bool version = false;
  bool info = false;
  /// "start" or "delete"; empty with -v and -info.
  std::string action;
};

/// "wasm" for ".../containerd-shim-gantry-wasm-v1"; "" for any other name.
std::string HandlerOf(const std::string& program);

/// `all` with the program's name first. Flags that containerd may add later
/// are taken with their value and ignored. Errors: kInvalidArgument.
Result<Arguments> ParseArguments(std::span<const std::string> all);

}  // namespace gantry::shim
