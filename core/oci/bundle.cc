// SPDX-License-Identifier: Apache-2.0
#include "core/oci/bundle.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace gantry::oci {
namespace {

namespace fs = std::filesystem;

// Longer paths cannot be opened. Source: linux/limits.h, PATH_MAX.
constexpr size_t kLongestPath = 4095;

bool IsPlain(std::string_view path) {
  if (!path.starts_with('/') || path.ends_with('/') || path.contains('\0')) {
    return false;
  }
  for (size_t start = 1; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    start = end + 1;
  }
  return true;
}

std::unexpected<Error> Refuse(std::string_view path, std::string_view cause) {
  return Fail(Code::kInvalidArgument, "check bundle '{}': {}", path.substr(0, 256), cause);
}

}  // namespace

Status CheckBundle(const std::string& path) {
  if (path.size() > kLongestPath) {
    return Refuse(path, "path too long");
  }
  if (!IsPlain(path)) {
    return Refuse(path, "not an absolute path without '.', '..' and empty parts");
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return Fail(Code::kNotFound, "check bundle '{}': no such directory", path);
  }
  if (error) {
    return FailErrno(error.value(), "check bundle '{}'", path);
  }
  if (status.type() == fs::file_type::symlink) {
    return Refuse(path, "a symbolic link");
  }
  if (status.type() != fs::file_type::directory) {
    return Refuse(path, "not a directory");
  }
  if ((status.permissions() & fs::perms::others_write) != fs::perms::none) {
    return Refuse(path, "writable for everyone");
  }
  return {};
}

std::string NameWhileDeleted(const std::string& path) {
  const fs::path bundle(path);
  return (bundle.parent_path() / ("." + bundle.filename().string())).string();
}

}  // namespace gantry::oci
