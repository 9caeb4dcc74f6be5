// SPDX-License-Identifier: Apache-2.0
//
// One call of gantry-wasm-fetch, by a process that the keeper starts: root, since containerd's
// socket is root's, but without capabilities, without a network, and with limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::wasm::fetch {

/// As messages name the program.
inline constexpr const char* kFetchName = "gantry-wasm-fetch";

struct Call {
  /// containerd's socket for gRPC: an absolute path.
  std::string address;
  /// What it is told beside that, its limit of time and its descriptors.
  std::vector<std::string> words;
  /// For errors: "the module of an image".
  std::string wanted;
  /// Where that is written to, and the word that it is told by.
  const UniqueFd& output;
  std::string output_word;
  /// Bytes of it.
  uint64_t max_bytes = 0;
  std::chrono::milliseconds limit{};
};

/// Its answer, a line of at most `kMaxAnswerBytes`; it has ended then. `program`:
/// gantry-wasm-fetch, open, borrowed. Errors: kDeadlineExceeded; kInternal: it has ended without an
/// answer; those of the context. Thread: workers. Blocks: up to the limit, and two seconds for the
/// program's end.
Result<std::string> AskFetch(SandboxContext& context, const UniqueFd& program, const Call& call);

}  // namespace gantry::wasm::fetch
