// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/manifest.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <gantry/toolkit/oci/json.h>

#include "plugins/wasm/fetch/digest.h"

namespace gantry::wasm::fetch {
namespace {

using oci::Json;

constexpr std::array<std::string_view, 2> kIndexes = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json"};
constexpr std::array<std::string_view, 2> kManifests = {
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json"};
constexpr std::array<std::string_view, 3> kConfigs = {
    "application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json",
    "application/vnd.wasm.config.v0+json"};
constexpr std::string_view kTitle = "org.opencontainers.image.title";

Result<Json> ObjectOf(std::string_view text, std::string_view what) {
  GANTRY_TRY(Json document, Json::Parse(text, what));
  if (!document.is_object()) {
    return document.Wrong("expected an object");
  }
  return document;
}

Result<Blob> BlobOf(const Json& json) {
  if (!json.is_object()) {
    return json.Wrong("expected a descriptor");
  }
  Blob blob;
  GANTRY_CHECK_OK(json["mediaType"].Read(blob.media_type));
  GANTRY_CHECK_OK(json["digest"].Read(blob.digest));
  std::optional<uint64_t> size;
  GANTRY_CHECK_OK(json["size"].Read(size));
  if (blob.media_type.empty() || !size) {
    return json.Wrong("a descriptor without mediaType or size");
  }
  if (auto digest = ParseDigest(blob.digest); !digest) {
    return std::unexpected(std::move(digest).error().Within(json.Wrong("digest").error().message));
  }
  blob.size = *size;
  return blob;
}

Result<Platform> PlatformOf(const Json& json) {
  GANTRY_CHECK_OK(json.CheckObject());
  Platform platform;
  GANTRY_CHECK_OK(json["os"].Read(platform.os));
  GANTRY_CHECK_OK(json["architecture"].Read(platform.architecture));
  return platform;
}

Result<std::vector<Json>> ItemsOf(const Json& list, size_t most) {
  GANTRY_TRY(auto items, list.Items());
  if (items.size() > most) {
    return Fail(Code::kFailedPrecondition, "{}: {} of them, {} are taken",
                list.Wrong("too many").error().message, items.size(), most);
  }
  return items;
}

}  // namespace

bool IsIndex(std::string_view media_type) { return std::ranges::contains(kIndexes, media_type); }

bool IsManifest(std::string_view media_type) {
  return std::ranges::contains(kManifests, media_type);
}

bool IsConfig(std::string_view media_type) { return std::ranges::contains(kConfigs, media_type); }

Result<std::vector<IndexEntry>> ParseIndex(std::string_view text, std::string_view what) {
  GANTRY_TRY(const Json document, ObjectOf(text, what));
  GANTRY_TRY(const auto items, ItemsOf(document["manifests"], kMaxIndexEntries));
  std::vector<IndexEntry> entries;
  entries.reserve(items.size());
  for (const Json& item : items) {
    GANTRY_TRY(Blob blob, BlobOf(item));
    IndexEntry entry{std::move(blob), std::nullopt};
    if (const Json platform = item["platform"]; !platform.absent()) {
      GANTRY_TRY(entry.platform, PlatformOf(platform));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<Manifest> ParseManifest(std::string_view text, std::string_view what) {
  GANTRY_TRY(const Json document, ObjectOf(text, what));
  Manifest manifest;
  GANTRY_TRY(manifest.config, BlobOf(document["config"]));
  GANTRY_TRY(const auto items, ItemsOf(document["layers"], kMaxLayers));
  manifest.layers.reserve(items.size());
  for (const Json& item : items) {
    GANTRY_TRY(Blob blob, BlobOf(item));
    Layer layer{std::move(blob), {}};
    GANTRY_CHECK_OK(item["annotations"].CheckObject());
    GANTRY_CHECK_OK(item["annotations"][kTitle].Read(layer.title));
    manifest.layers.push_back(std::move(layer));
  }
  return manifest;
}

Result<Platform> ParseConfig(std::string_view text, std::string_view what) {
  GANTRY_TRY(const Json document, ObjectOf(text, what));
  return PlatformOf(document);
}

std::vector<IndexEntry> InOrderOfChoice(const std::vector<IndexEntry>& entries,
                                        std::string_view host_architecture) {
  std::vector<IndexEntry> chosen;
  const auto take = [&](auto wanted) {
    std::ranges::copy_if(entries, std::back_inserter(chosen), wanted);
  };
  take([](const IndexEntry& entry) {
    return entry.platform && entry.platform->architecture == "wasm";
  });
  take([&](const IndexEntry& entry) {
    return entry.platform && entry.platform->architecture == host_architecture;
  });
  take([](const IndexEntry& entry) { return !entry.platform; });
  return chosen;
}

}  // namespace gantry::wasm::fetch
