// SPDX-License-Identifier: Apache-2.0
//
// What comes on stdin of `start`: nothing, the runtime options as a
// google.protobuf.Any (containerd 1.6 to 2.2), or BootstrapParams (2.3 and later).
// An Any also reads as BootstrapParams (its type URL in the place of the id), so
// the latter is believed only where id and namespace are those of the flags.
// Source: containerd 2.3.4, pkg/shim and api/runtime/bootstrap/v1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::shim {

struct Bootstrap {
  /// 3: BootstrapParams came.
  uint32_t version = 0;
  std::string options_type_url;
  std::string options;
  // The rest is of BootstrapParams only.
  std::string grpc_address;
  std::string ttrpc_address;
  std::string containerd_binary;
  std::string containerd_version;
  bool debug = false;
};

/// Bytes that are neither count as nothing: what containerd may send one day must not
/// keep a container from starting.
Bootstrap ParseBootstrap(std::string_view input, std::string_view id, std::string_view ns);

}  // namespace gantry::shim
