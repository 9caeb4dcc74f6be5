// SPDX-License-Identifier: Apache-2.0
//
// What is asked of containerd: whose image a container is of, and the blobs of that image.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/wasm/fetch/manifest.h"

namespace gantry::wasm::fetch {

/// In one namespace of one containerd.
class Store {
 public:
  /// Takes bytes in their order. An error ends the read with it.
  using Sink = std::function<Status(std::string_view bytes)>;

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// The name of the container's image; empty: it was made without one. Errors: kNotFound.
  virtual Result<std::string> ImageOf(const std::string& container) = 0;
  /// The image's manifest or index; nothing of it has been checked. Errors: kNotFound.
  virtual Result<Blob> TargetOf(const std::string& image) = 0;
  /// The blob from its beginning, or its first `most` bytes; 0: all. Errors: kNotFound; the
  /// sink's. Of all: kUnavailable, kDeadlineExceeded.
  virtual Status Read(const std::string& digest, uint64_t most, const Sink& sink) = 0;

 protected:
  Store() = default;
};

}  // namespace gantry::wasm::fetch
