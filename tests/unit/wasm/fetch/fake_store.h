// SPDX-License-Identifier: Apache-2.0
//
// A containerd's store in memory, and images in it that tests put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/wasm/fetch/store.h"

namespace gantry::wasm::fetch {

inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kTarType = "application/vnd.oci.image.layer.v1.tar+gzip";
inline constexpr std::string_view kWasmType = "application/wasm";

/// The header of a core module and that of a component, each with something behind it.
std::string CoreModule(std::string_view rest = "");
std::string Component(std::string_view rest = "");

/// "sha256:..." of those bytes.
std::string DigestOf(std::string_view bytes);

class FakeStore : public Store {
 public:
  Result<std::string> ImageOf(const std::string& container) override;
  Result<Blob> TargetOf(const std::string& image) override;
  /// In portions of three bytes.
  Status Read(const std::string& digest, uint64_t most, const Sink& sink) override;

  /// Puts the bytes there.
  Blob Add(std::string_view media_type, std::string_view bytes);
  /// The same with a title.
  Layer AddLayer(std::string_view media_type, std::string_view bytes,
                 const std::string& title = "");
  Blob AddManifest(const std::string& os, const std::string& architecture,
                   const std::vector<Layer>& layers, std::string_view config_type = kConfigType);
  Blob AddIndex(const std::vector<IndexEntry>& entries);
  /// The container `c1` is of the image `image`, which is that.
  void Use(const Blob& target);

  std::map<std::string, std::string> containers;
  std::map<std::string, Blob> images;
  /// By digest.
  std::map<std::string, std::string> blobs;
  /// The digests that were read, in order.
  std::vector<std::string> reads;
};

}  // namespace gantry::wasm::fetch
