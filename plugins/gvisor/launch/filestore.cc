// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/filestore.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/files.h>
#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

// The sentry keeps the file's own rights out of the container's sight.
constexpr mode_t kFilestoreMode = 0666;

std::string PathIn(const FileMount& mount, const std::string& sandbox_id) {
  return Format("{}/.gvisor.filestore.{}", mount.source, sandbox_id);
}

Result<UniqueFd> MakeNamed(const std::string& path) {
  GANTRY_CHECK_OK(RemoveFile(path));
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFilestoreMode));
  if (!file) {
    return FailErrno(errno, "make the file of the writable layer '{}'", path);
  }
  return file;
}

Result<UniqueFd> MakeUnnamed(const std::string& directory) {
  UniqueFd file(open(directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, kFilestoreMode));
  if (!file) {
    return FailErrno(errno, "make the file of a writable layer in '{}' (runsc_config.overlay2)",
                     directory);
  }
  return file;
}

}  // namespace

std::vector<std::string> FilestorePaths(const Spec& spec, const std::string& sandbox_id) {
  std::vector<std::string> paths;
  for (const FileMount& mount : spec.mounts) {
    if (mount.conf.upper == MountConf::Upper::kSelf) {
      paths.push_back(PathIn(mount, sandbox_id));
    }
  }
  return paths;
}

Result<std::vector<UniqueFd>> MakeFilestores(const Spec& spec, const Overlay& overlay,
                                             const std::string& sandbox_id) {
  std::vector<UniqueFd> files;
  for (const FileMount& mount : spec.mounts) {
    if (mount.conf.upper != MountConf::Upper::kSelf &&
        mount.conf.upper != MountConf::Upper::kAnon) {
      continue;
    }
    auto made = mount.conf.upper == MountConf::Upper::kSelf ? MakeNamed(PathIn(mount, sandbox_id))
                                                            : MakeUnnamed(overlay.directory);
    if (!made) {
      IgnoreError(RemoveFilestores(FilestorePaths(spec, sandbox_id)), "the first error counts");
      return std::unexpected(std::move(made).error());
    }
    files.push_back(std::move(*made));
  }
  return files;
}

Status RemoveFilestores(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    GANTRY_CHECK_OK(RemoveFile(path));
  }
  return {};
}

}  // namespace gantry::gvisor
