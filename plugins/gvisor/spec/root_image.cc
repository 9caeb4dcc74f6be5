// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/root_image.h"

#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/open_regular.h>

namespace gantry::gvisor {
namespace {

constexpr std::string_view kSource = "dev.gvisor.spec.rootfs.source";

}  // namespace

Result<UniqueFd> OpenRootImage(const std::string& path, const Options& options) {
  if (options.image_prefixes.empty()) {
    return Fail(Code::kPermissionDenied,
                "check annotation '{}': '{}': the handler allows no images; its option "
                "'image_prefixes' names the directories that they may be in",
                kSource, path);
  }
  auto image = OpenRegularBelow(path, options.image_prefixes);
  if (!image) {
    Error error = std::move(image).error();
    error.message =
        Format("check annotation '{}': {} (option 'image_prefixes')", kSource, error.message);
    return std::unexpected(std::move(error));
  }
  return image;
}

Status CheckRootImage(const Spec& spec, const Options& options) {
  if (spec.HasRootOfGofer()) {
    return {};
  }
  GANTRY_TRY([[maybe_unused]] const UniqueFd image,
             OpenRootImage(spec.mounts.front().source, options));
  return {};
}

}  // namespace gantry::gvisor
