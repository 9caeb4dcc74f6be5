// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/module_of.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>

#include "plugins/wasm/fetch/digest.h"
#include "plugins/wasm/fetch/layers.h"

namespace gantry::wasm::fetch {
namespace {

// Indexes of indexes. Real ones have one level.
constexpr int kMaxLevels = 4;

/// Gives the whole blob to `sink`, and checks it. What the sink got before an error is not to be
/// used.
Status ReadChecked(Store& store, const Blob& blob, const Store::Sink& sink) {
  GANTRY_TRY(const Sha256Digest wanted, ParseDigest(blob.digest));
  Sha256 sum;
  uint64_t got = 0;
  GANTRY_CHECK_OK(store.Read(blob.digest, 0, [&](std::string_view bytes) -> Status {
    got += bytes.size();
    if (got > blob.size) {
      return Fail(Code::kDataLoss, "read blob '{}': longer than the {} bytes of its descriptor",
                  blob.digest, blob.size);
    }
    sum.Add(bytes);
    return sink(bytes);
  }));
  if (got != blob.size) {
    return Fail(Code::kDataLoss, "read blob '{}': {} bytes, its descriptor says {}", blob.digest,
                got, blob.size);
  }
  if (const Sha256Digest is = sum.Finish(); is != wanted) {
    return Fail(Code::kDataLoss,
                "read blob '{}': its content is {}: the content store is damaged; pull the image "
                "again",
                blob.digest, DigestText(is));
  }
  return {};
}

Result<std::string> ReadDocument(Store& store, const Blob& blob) {
  if (blob.size > kMaxDocumentBytes) {
    return Fail(Code::kResourceExhausted, "read '{}' ({}): {} bytes, {} are taken", blob.digest,
                blob.media_type, blob.size, kMaxDocumentBytes);
  }
  std::string text;
  text.reserve(blob.size);
  GANTRY_CHECK_OK(ReadChecked(store, blob, [&](std::string_view bytes) -> Status {
    text += bytes;
    return {};
  }));
  return text;
}

Result<std::string> HeadOf(Store& store, const Blob& blob, size_t most) {
  std::string head;
  GANTRY_CHECK_OK(store.Read(blob.digest, most, [&](std::string_view bytes) -> Status {
    head += bytes.substr(0, most - head.size());
    return {};
  }));
  return head;
}

Status WriteAll(int output, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(output, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) {
      return FailErrno(errno, "write the module");
    }
    bytes.remove_prefix(wrote < 0 ? 0 : static_cast<size_t>(wrote));
  }
  return {};
}

std::string NameOf(std::string_view kind, const Blob& blob) {
  return Format("{} {}", kind, blob.digest);
}

/// The manifest of the index that is meant, of those whose content is here: a pull brings that of
/// one platform alone. Its text goes into `text`.
Result<Blob> ChooseManifest(Store& store, const Blob& index, std::string_view host_architecture,
                            std::string& text) {
  GANTRY_TRY(const auto entries, ParseIndex(text, NameOf("index", index)));
  for (IndexEntry& entry : InOrderOfChoice(entries, host_architecture)) {
    auto read = ReadDocument(store, entry.blob);
    if (read) {
      text = std::move(*read);
      return std::move(entry.blob);
    }
    if (read.error().code != Code::kNotFound) {
      return std::unexpected(std::move(read).error());
    }
  }
  return Fail(Code::kFailedPrecondition,
              "find the image's manifest: of the {} of index {} none for wasm or {} is in the "
              "content store; pull the image for that platform",
              entries.size(), index.digest, host_architecture);
}

Result<Manifest> ReadManifest(Store& store, Blob target, std::string_view host_architecture) {
  if (!IsIndex(target.media_type) && !IsManifest(target.media_type)) {
    return Fail(Code::kFailedPrecondition,
                "find the image's manifest: {} is of the media type '{}', neither a manifest nor "
                "an index",
                target.digest, target.media_type.substr(0, 200));
  }
  GANTRY_TRY(std::string text, ReadDocument(store, target));
  for (int level = 0; IsIndex(target.media_type); ++level) {
    if (level == kMaxLevels) {
      return Fail(Code::kFailedPrecondition,
                  "find the image's manifest: index {} is in {} others, one in the other",
                  target.digest, kMaxLevels);
    }
    GANTRY_TRY(target, ChooseManifest(store, target, host_architecture, text));
  }
  return ParseManifest(text, NameOf("manifest", target));
}

Result<Platform> ReadPlatform(Store& store, const Blob& config) {
  if (!IsConfig(config.media_type)) {
    return Fail(Code::kFailedPrecondition,
                "read the image's config: {} is of the media type '{}', which is not known",
                config.digest, config.media_type.substr(0, 200));
  }
  GANTRY_TRY(const std::string text, ReadDocument(store, config));
  return ParseConfig(text, NameOf("config", config));
}

Status FetchLayer(Store& store, const Blob& blob, uint64_t max_bytes, int output) {
  if (blob.size > max_bytes) {
    return Fail(Code::kResourceExhausted, "read the module {}: {} bytes, {} are allowed",
                blob.digest, blob.size, max_bytes);
  }
  return ReadChecked(store, blob,
                     [output](std::string_view bytes) { return WriteAll(output, bytes); });
}

}  // namespace

Result<ImageAnswer> FetchModule(Store& store, const ModuleRequest& request, int output) {
  std::string image = request.image;
  if (!request.container.empty()) {
    GANTRY_TRY(image, store.ImageOf(request.container));
  }
  if (image.empty()) {
    return Fail(Code::kFailedPrecondition, "find the image of container '{}': it has none",
                request.container);
  }
  GANTRY_TRY(Blob target, store.TargetOf(image));
  GANTRY_TRY(const Manifest manifest,
             ReadManifest(store, std::move(target), request.host_architecture));
  ImageAnswer answer;
  GANTRY_TRY(answer.platform, ReadPlatform(store, manifest.config));
  for (const Layer& layer : manifest.layers) {
    answer.layers.push_back(layer.blob);
  }
  GANTRY_TRY(
      std::optional<Layer> chosen,
      ChooseLayer(manifest.layers, answer.platform, request.program,
                  [&store](const Blob& blob, size_t most) { return HeadOf(store, blob, most); }));
  if (chosen) {
    GANTRY_CHECK_OK(FetchLayer(store, chosen->blob, request.max_bytes, output));
    answer.module = std::move(chosen->blob);
  }
  return answer;
}

}  // namespace gantry::wasm::fetch
