// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/vmm_root.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace gantry::vmm {
namespace {

/// Where libraries, firmware and modules of VMMs are, and what all of them open.
constexpr std::string_view kOfAll[] = {
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/dev/kvm",
};

/// As `RootPath` wants it.
std::string Plain(const std::string& path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/')) {
    plain.pop_back();
  }
  return plain;
}

/// Of `/opt/x/bin/qemu` it is `/opt/x`, of `/bin/qemu` it is `/bin`, of `/home/me/qemu` `/home/me`.
std::string InstalledIn(const std::string& program) {
  const std::filesystem::path folder = std::filesystem::path(Plain(program)).parent_path();
  const std::filesystem::path above = folder.parent_path();
  const bool has_place = folder.filename() == "bin" || folder.filename() == "libexec";
  return has_place && above.has_relative_path() ? above.string() : folder.string();
}

bool IsIn(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

/// Another has it, as it is to be.
bool IsShownBy(const RootPath& one, const RootPath& other) {
  return other.writable == one.writable && (other.path == one.path || IsIn(one.path, other.path));
}

}  // namespace

std::vector<RootPath> RootOf(const std::string& program, const Hypervisor& hypervisor,
                             const std::vector<RootPath>& more) {
  std::vector<RootPath> wanted;
  for (const std::string_view path : kOfAll) {
    wanted.push_back({.path = std::string(path)});
  }
  if (program.starts_with('/')) {
    wanted.push_back({.path = InstalledIn(program)});
  }
  std::ranges::copy(hypervisor.Paths(), std::back_inserter(wanted));
  std::ranges::copy(more, std::back_inserter(wanted));
  for (RootPath& one : wanted) {
    one.path = Plain(one.path);
  }
  // So that a directory comes before what is in it.
  std::ranges::stable_sort(wanted, {}, &RootPath::path);
  std::vector<RootPath> root;
  for (RootPath& one : wanted) {
    const bool is_there =
        std::ranges::any_of(root, [&one](const RootPath& other) { return IsShownBy(one, other); });
    if (!is_there && access(one.path.c_str(), F_OK) == 0) {
      root.push_back(std::move(one));
    }
  }
  return root;
}

}  // namespace gantry::vmm
