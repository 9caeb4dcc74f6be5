// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/options.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace gantry::vmm {

Status CheckStorageOptions(const StorageOptions& options) {
  constexpr auto kCaches = std::to_array<std::string_view>({"auto", "metadata", "never", "always"});
  if (!options.virtiofsd.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "option 'virtiofsd': '{}': must be an absolute path",
                options.virtiofsd);
  }
  if (!std::ranges::contains(kCaches, options.cache)) {
    return Fail(Code::kInvalidArgument,
                "option 'virtiofs_cache': '{}': must be auto, metadata, never or always",
                options.cache);
  }
  return {};
}

}  // namespace gantry::vmm
