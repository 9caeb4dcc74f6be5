// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/directories.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include <gantry/unique_fd.h>

namespace gantry::wasm {
namespace {

// `/a//b/` is `/a/b`. None: it is the root, or has parts that are not names.
std::optional<std::string> Cleaned(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name == "." || name == "..") {
      return std::nullopt;
    }
    if (!name.empty()) {
      out += '/';
      out += name;
    }
  }
  return out.empty() ? std::nullopt : std::optional(std::move(out));
}

// The last word counts, as with mount(8).
bool IsWritable(const oci::SpecMount& mount) {
  bool writable = true;
  for (const std::string& word : mount.options) {
    if (word == "ro" || word == "rro") {
      writable = false;
    } else if (word == "rw" || word == "rrw") {
      writable = true;
    }
  }
  return writable;
}

bool IsIn(const std::string& path, const std::string& directory) {
  return directory == "/" || (path.starts_with(directory) &&
                              (path.size() == directory.size() || path[directory.size()] == '/'));
}

bool CanBeOpened(const std::string& path) {
  return static_cast<bool>(UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
}

}  // namespace

std::vector<Directory> DirectoriesOf(const oci::Spec& spec) {
  std::vector<Directory> out = {{.path = "/", .writable = !spec.root.readonly}};
  for (const oci::SpecMount& mount : spec.mounts) {
    const auto path = Cleaned(mount.destination);
    if (!path) {
      continue;
    }
    // What is mounted later hides what was there.
    std::erase_if(out,
                  [&](const Directory& one) { return one.path != "/" && IsIn(one.path, *path); });
    const Directory* above = &out.front();
    for (const Directory& one : out) {
      above = IsIn(*path, one.path) && one.path.size() >= above->path.size() ? &one : above;
    }
    if (IsWritable(mount) != above->writable && CanBeOpened(*path)) {
      out.push_back({.path = *path, .writable = !above->writable});
    }
  }
  return out;
}

}  // namespace gantry::wasm
