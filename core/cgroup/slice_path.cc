// SPDX-License-Identifier: Apache-2.0
#include "core/cgroup/slice_path.h"

#include <gantry/format.h>

namespace gantry::cgroup {

Result<std::string> SlicePath(std::string_view slice) {
  std::string_view name = slice;
  if (name.ends_with(kSliceSuffix)) {
    name.remove_suffix(kSliceSuffix.size());
    if (name == "-") {
      return "/";
    }
  } else {
    name = {};
  }
  if (name.empty() || name.starts_with('-') || name.ends_with('-') || name.contains("--") ||
      name.contains('/')) {
    return Fail(Code::kInvalidArgument, "'{}': not the name of a slice", slice);
  }
  std::string path;
  for (size_t dash = name.find('-');; dash = name.find('-', dash + 1)) {
    path += Format("/{}{}", name.substr(0, dash), kSliceSuffix);
    if (dash == std::string_view::npos) {
      return path;
    }
  }
}

}  // namespace gantry::cgroup
