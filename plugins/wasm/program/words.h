// SPDX-License-Identifier: Apache-2.0
//
// What gantry-wasm is told beside the words of gantry-init, by who starts it and not by the image.
// Another engine is another program with the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <gantry/error.h>

namespace gantry::wasm {

inline constexpr const char* kUsage =
    "--artifact=FD --kind=module|command|proxy [--entry=NAME] [--memory=BYTES]\n"
    "           [--network=pod|none] [--listen=ADDRESS:PORT]";

struct Words {
  /// A sealed file in memory with the compiled artifact, or with the module itself where the engine
  /// compiles none; negative: it was not said.
  int artifact = -1;
  /// A gantry_wasm_kind; negative: it was not said.
  int kind = -1;
  /// Of a module: the function that is run. None: `_start`.
  std::optional<std::string> entry;
  /// Of one linear memory, at most; 0: the engine sets no limit.
  uint64_t memory_bytes = 0;
  /// The guest may have sockets, which are in the network namespace of the container.
  bool network = true;
  /// Where a proxy listens.
  std::string listen = "0.0.0.0:8080";
};

/// Takes `--NAME=VALUE`; false: it is none of these. Errors: kInvalidArgument, naming the word.
Result<bool> TakeWord(const std::string& name, const std::string& value, Words& out);

/// What goes together, and is there. Errors: kInvalidArgument.
Status CheckWords(const Words& words);

}  // namespace gantry::wasm
