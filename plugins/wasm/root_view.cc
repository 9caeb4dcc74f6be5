// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/root_view.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ranges>
#include <string_view>

#include <gantry/format.h>

namespace gantry::wasm {
namespace {

bool IsBind(const oci::SpecMount& mount) {
  return mount.type == "bind" || std::ranges::any_of(mount.options, [](const std::string& option) {
           return option == "bind" || option == "rbind";
         });
}

/// What of `path` lies in `folder`, with its slash; none where it is not in it.
bool IsIn(const std::string& folder, std::string_view path, std::string_view& rest) {
  if (folder == "/") {
    rest = path;
    return true;
  }
  if (!path.starts_with(folder)) {
    return false;
  }
  rest = path.substr(folder.size());
  return rest.empty() || rest.starts_with('/');
}

}  // namespace

std::string NormalPath(const std::string& folder, const std::string& path) {
  std::string text =
      (std::filesystem::path("/") / folder / path).lexically_normal().generic_string();
  if (text.size() > 1 && text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

Result<RootView> RootView::Open(const std::string& rootfs, const std::string& bundle,
                                const std::vector<oci::SpecMount>& mounts) {
  RootView view;
  view.root_.reset(open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!view.root_) {
    return FailErrno(errno, "open the root file system '{}'", rootfs);
  }
  for (const oci::SpecMount& mount : mounts) {
    view.mounts_.push_back(
        {.destination = NormalPath("/", mount.destination),
         .source = IsBind(mount) ? NormalPath(bundle, mount.source) : std::string()});
  }
  return view;
}

Result<ImageFile> RootView::OpenFile(const std::string& path) const {
  for (const Covering& mount : mounts_ | std::views::reverse) {
    std::string_view rest;
    if (!IsIn(mount.destination, path, rest)) {
      continue;
    }
    if (mount.source.empty()) {
      return Fail(Code::kNotFound, "'{}': it is below the mount at '{}'", path, mount.destination);
    }
    // The spec's own path on the node: links in it are followed, as when it is mounted.
    const UniqueFd source(open(mount.source.c_str(), O_PATH | O_CLOEXEC));
    if (!source) {
      return FailErrno(errno, "open '{}', which is mounted at '{}'", mount.source,
                       mount.destination);
    }
    return rest.empty() ? OpenImageFile(source, path)
                        : OpenImageFile(source.get(), std::string(rest), path);
  }
  return OpenImageFile(root_.get(), path, path);
}

bool RootView::IsMountPoint(const std::string& path) const {
  return std::ranges::any_of(mounts_,
                             [&](const Covering& mount) { return mount.destination == path; });
}

}  // namespace gantry::wasm
