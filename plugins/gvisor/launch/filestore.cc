// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/filestore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

// The sentry keeps the file's own rights out of the container's sight.
constexpr mode_t kFilestoreMode = 0666;

std::string PathIn(const std::string& directory, const std::string& sandbox_id) {
  return Format("{}/.gvisor.filestore.{}", directory, sandbox_id);
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

/// A volume's: the first of its containers makes it. The pod's other containers may have had
/// their hands on the directory, so it is not any file of that name.
Result<UniqueFd> OpenPods(const std::string& path) {
  UniqueFd file(
      open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kFilestoreMode));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0) {
    return FailErrno(errno, "make the file of the volume '{}'", path);
  }
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
    return Fail(Code::kFailedPrecondition,
                "make the file of the volume '{}': there is another of that name", path);
  }
  return file;
}

Result<UniqueFd> MakeFor(const FileMount& mount, const Overlay& overlay,
                         const std::string& sandbox_id) {
  if (mount.conf.upper == MountConf::Upper::kAnon) {
    return MakeUnnamed(overlay.directory);
  }
  const std::string path = PathIn(mount.source, sandbox_id);
  return mount.is_pods ? OpenPods(path) : MakeNamed(path);
}

}  // namespace

std::vector<std::string> FilestorePaths(const Spec& spec, const std::string& sandbox_id) {
  std::vector<std::string> paths;
  for (const FileMount& mount : spec.mounts) {
    if (mount.conf.upper == MountConf::Upper::kSelf && !mount.is_pods) {
      paths.push_back(PathIn(mount.source, sandbox_id));
    }
  }
  return paths;
}

std::vector<std::string> VolumeFiles(const std::vector<Volume>& volumes,
                                     const std::string& sandbox_id) {
  std::vector<std::string> paths;
  paths.reserve(volumes.size());
  for (const Volume& volume : volumes) {
    paths.push_back(PathIn(volume.source(), sandbox_id));
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
    auto made = MakeFor(mount, overlay, sandbox_id);
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
