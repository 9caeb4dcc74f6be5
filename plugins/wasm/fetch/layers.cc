// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/layers.h"

#include <algorithm>
#include <array>

#include <gantry/format.h>

namespace gantry::wasm::fetch {
namespace {

constexpr std::array<std::string_view, 3> kWasmTypes = {
    "application/wasm", "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
    "application/vnd.wasm.content.layer.v1+wasm"};
// Each with what it is packed with behind: "", ".gzip", "+gzip", "+zstd".
constexpr std::array<std::string_view, 4> kFileTypes = {
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.foreign.diff.tar"};
// A component's first eight bytes. Source: WebAssembly/component-model, Binary.md.
constexpr std::string_view kComponent("\0asm\x0d\0\x01\0", 8);

/// A title is a file's name; an argument may be its path from the root.
std::string_view WithoutRoot(std::string_view path) {
  path.remove_prefix(path.starts_with("./") ? 2 : path.starts_with('/') ? 1 : 0);
  return path;
}

std::string ListOf(const std::vector<Layer>& layers) {
  std::string text;
  for (const Layer& layer : layers) {
    text +=
        Format("{}{} '{}'", text.empty() ? "" : ", ", layer.blob.digest, layer.title.substr(0, 80));
    if (text.size() > 800) {
      return text + ", ...";
    }
  }
  return text;
}

/// Refuses what would be left out without a word.
Status CheckKinds(const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) {
    if (LayerKindOf(layer.blob.media_type) == LayerKind::kUnknown) {
      return Fail(Code::kFailedPrecondition,
                  "find the module of the image: layer {} is of the media type '{}', which is not "
                  "known; modules are of {}, files in tars",
                  layer.blob.digest, layer.blob.media_type.substr(0, 200), WasmLayerTypes());
    }
  }
  return {};
}

Result<Layer> ChooseOf(const std::vector<Layer>& modules, std::string_view program,
                       const ReadHead& head) {
  std::vector<Layer> meant;
  std::ranges::copy_if(modules, std::back_inserter(meant), [&](const Layer& layer) {
    return !layer.title.empty() && WithoutRoot(layer.title) == WithoutRoot(program);
  });
  if (meant.empty()) {
    for (const Layer& layer : modules) {
      GANTRY_TRY(const std::string bytes, head(layer.blob, kComponent.size()));
      if (bytes == kComponent) {
        meant.push_back(layer);
      }
    }
  }
  if (meant.size() != 1) {
    return Fail(Code::kFailedPrecondition,
                "find the module of the image: which of its {} wasm layers is the program: {}; "
                "give one the title '{}' (org.opencontainers.image.title)",
                modules.size(), ListOf(modules), program.substr(0, 200));
  }
  return meant.front();
}

}  // namespace

LayerKind LayerKindOf(std::string_view media_type) {
  if (std::ranges::contains(kWasmTypes, media_type)) {
    return LayerKind::kWasm;
  }
  for (const std::string_view files : kFileTypes) {
    const std::string_view rest = media_type.substr(std::min(media_type.size(), files.size()));
    if (media_type.starts_with(files) && (rest.empty() || rest[0] == '.' || rest[0] == '+')) {
      return LayerKind::kFiles;
    }
  }
  return LayerKind::kUnknown;
}

std::string WasmLayerTypes() {
  std::string text;
  for (const std::string_view type : kWasmTypes) {
    text += (text.empty() ? "" : ", ") + std::string(type);
  }
  return text;
}

Result<std::optional<Layer>> ChooseLayer(const std::vector<Layer>& layers, const Platform& platform,
                                         std::string_view program, const ReadHead& head) {
  std::vector<Layer> modules;
  std::ranges::copy_if(layers, std::back_inserter(modules), [](const Layer& layer) {
    return LayerKindOf(layer.blob.media_type) == LayerKind::kWasm;
  });
  if (modules.empty() && platform.architecture != "wasm") {
    return std::optional<Layer>();
  }
  GANTRY_CHECK_OK(CheckKinds(layers));
  if (modules.size() < 2) {
    return modules.empty() ? std::optional<Layer>() : std::optional(modules.front());
  }
  GANTRY_TRY(Layer chosen, ChooseOf(modules, program, head));
  return std::optional(std::move(chosen));
}

}  // namespace gantry::wasm::fetch
