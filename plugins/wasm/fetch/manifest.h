// SPDX-License-Identifier: Apache-2.0
//
// The documents of an image: index, manifest and config, as far as they say where a module is.
// Source: opencontainers/image-spec 1.1, image-index.md, manifest.md, config.md; CNCF, "Wasm OCI
// artifact layout". Thread: any. Blocks: never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::wasm::fetch {

/// What containerd takes of one document at most. Source: containerd 2.3, core/images/image.go.
inline constexpr uint64_t kMaxDocumentBytes = uint64_t{4} << 20;
/// Of an image. Real ones have a hundred at most, since overlayfs takes no more.
inline constexpr size_t kMaxLayers = 500;
/// Of an index: platforms, and what else is kept for each.
inline constexpr size_t kMaxIndexEntries = 1000;

struct Platform {
  /// "linux", "wasi", "wasip1", "wasip2"; empty: it is not said.
  std::string os;
  /// In Go's names: "amd64"; "wasm".
  std::string architecture;

  bool operator==(const Platform&) const = default;
};

/// A descriptor: what a blob of the content store is.
struct Blob {
  std::string media_type;
  /// `ParseDigest` takes it.
  std::string digest;
  /// Bytes.
  uint64_t size = 0;
};

struct Layer {
  Blob blob;
  /// Its annotation org.opencontainers.image.title: a file's name; empty: it has none.
  std::string title;
};

struct IndexEntry {
  Blob blob;
  std::optional<Platform> platform;
};

struct Manifest {
  Blob config;
  std::vector<Layer> layers;
};

bool IsIndex(std::string_view media_type);
bool IsManifest(std::string_view media_type);
/// Of an image that is run, or of a wasm artifact; both say their platform in the same words.
bool IsConfig(std::string_view media_type);

/// `what` is what errors call the document. Errors: kInvalidArgument: JSON, types, digests or
/// sizes are wrong, with the place; kFailedPrecondition: more entries than are taken, a digest of
/// an unknown algorithm.
Result<std::vector<IndexEntry>> ParseIndex(std::string_view text, std::string_view what);
Result<Manifest> ParseManifest(std::string_view text, std::string_view what);
Result<Platform> ParseConfig(std::string_view text, std::string_view what);

/// Those of the index that can be meant, best first: of the architecture wasm, then of the host's,
/// then those that say no platform; each kind in the index' order.
std::vector<IndexEntry> InOrderOfChoice(const std::vector<IndexEntry>& entries,
                                        std::string_view host_architecture);

}  // namespace gantry::wasm::fetch
