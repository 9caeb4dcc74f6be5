// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/wasm/fetch/fake_store.h"

#include <algorithm>

#include <gantry/format.h>

#include "plugins/wasm/fetch/digest.h"

namespace gantry::wasm::fetch {
namespace {

std::string Descriptor(const Blob& blob, const std::string& more = "") {
  return Format(R"({{"mediaType":"{}","digest":"{}","size":{}{}}})", blob.media_type, blob.digest,
                blob.size, more);
}

}  // namespace

std::string CoreModule(std::string_view rest) {
  return std::string("\0asm\x01\0\0\0", 8) + std::string(rest);
}

std::string Component(std::string_view rest) {
  return std::string("\0asm\x0d\0\x01\0", 8) + std::string(rest);
}

std::string DigestOf(std::string_view bytes) { return DigestText(Sha256Of(bytes)); }

Result<std::string> FakeStore::ImageOf(const std::string& container) {
  const auto found = containers.find(container);
  if (found == containers.end()) {
    return Fail(Code::kNotFound, "find container '{}'", container);
  }
  return found->second;
}

Result<Blob> FakeStore::TargetOf(const std::string& image) {
  const auto found = images.find(image);
  if (found == images.end()) {
    return Fail(Code::kNotFound, "find image '{}'", image);
  }
  return found->second;
}

Status FakeStore::Read(const std::string& digest, uint64_t most, const Sink& sink) {
  reads.push_back(digest);
  const auto found = blobs.find(digest);
  if (found == blobs.end()) {
    return Fail(Code::kNotFound, "read blob '{}'", digest);
  }
  std::string_view left = found->second;
  left = left.substr(0, most == 0 ? left.size() : most);
  while (!left.empty()) {
    GANTRY_CHECK_OK(sink(left.substr(0, 3)));
    left.remove_prefix(std::min<size_t>(left.size(), 3));
  }
  return {};
}

Blob FakeStore::Add(std::string_view media_type, std::string_view bytes) {
  Blob blob{std::string(media_type), DigestOf(bytes), bytes.size()};
  blobs[blob.digest] = bytes;
  return blob;
}

Layer FakeStore::AddLayer(std::string_view media_type, std::string_view bytes,
                          const std::string& title) {
  return {Add(media_type, bytes), title};
}

Blob FakeStore::AddManifest(const std::string& os, const std::string& architecture,
                            const std::vector<Layer>& layers, std::string_view config_type) {
  const Blob config =
      Add(config_type, Format(R"({{"os":"{}","architecture":"{}"}})", os, architecture));
  std::string list;
  for (const Layer& layer : layers) {
    list += list.empty() ? "" : ",";
    list += Descriptor(
        layer.blob,
        layer.title.empty()
            ? ""
            : Format(R"(,"annotations":{{"org.opencontainers.image.title":"{}"}})", layer.title));
  }
  return Add(kManifestType, Format(R"({{"schemaVersion":2,"config":{},"layers":[{}]}})",
                                   Descriptor(config), list));
}

Blob FakeStore::AddIndex(const std::vector<IndexEntry>& entries) {
  std::string list;
  for (const IndexEntry& entry : entries) {
    list += list.empty() ? "" : ",";
    list += Descriptor(entry.blob, entry.platform
                                       ? Format(R"(,"platform":{{"os":"{}","architecture":"{}"}})",
                                                entry.platform->os, entry.platform->architecture)
                                       : "");
  }
  return Add(kIndexType, Format(R"({{"schemaVersion":2,"manifests":[{}]}})", list));
}

void FakeStore::Use(const Blob& target) {
  containers["c1"] = "image";
  images["image"] = target;
}

}  // namespace gantry::wasm::fetch
