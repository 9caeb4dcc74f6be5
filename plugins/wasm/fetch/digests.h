// SPDX-License-Identifier: Apache-2.0
//
// All that a containerd's content store has, by digest: which modules are layers of images still.
// What no image has any more containerd removes from there by itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/module/sha256.h"

namespace gantry::wasm::fetch {

/// More blobs than a node has.
inline constexpr size_t kMaxDigests = size_t{1} << 18;

/// Collects digests and writes them, 32 bytes each, to a descriptor, which is borrowed. Thread:
/// one.
class DigestWriter {
 public:
  explicit DigestWriter(int output) : output_(output) {}

  /// One of another algorithm than SHA-256 is left out. Errors: kResourceExhausted: there are more
  /// than `kMaxDigests`; the errno's.
  Status Add(std::string_view digest);
  /// To be called last. The answer of gantry-wasm-fetch: `{"digests":N}`. Errors: the errno's.
  Result<std::string> Finish();

 private:
  Status Flush();

  const int output_;
  size_t count_ = 0;
  std::string pending_;
};

/// Asks the containerd that listens at `address`, in all of its namespaces. `program`:
/// gantry-wasm-fetch, open, borrowed. Errors: those of `AskFetch`; kUnavailable: containerd cannot
/// be reached; kResourceExhausted: there are more than `kMaxDigests`; kInternal: what came is not
/// what was said. Thread: workers. Blocks: as `AskFetch`.
Result<std::set<Sha256Digest>> FindDigests(SandboxContext& context, const UniqueFd& program,
                                           const std::string& address,
                                           std::chrono::milliseconds limit);

}  // namespace gantry::wasm::fetch
