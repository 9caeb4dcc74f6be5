// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::vmm {
namespace {

SourceKind KindOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return SourceKind::kDirectory;
    case S_IFBLK:
      return SourceKind::kBlockDevice;
    case S_IFCHR:
      return SourceKind::kCharDevice;
    case S_IFSOCK:
      return SourceKind::kSocket;
    case S_IFIFO:
      return SourceKind::kFifo;
    default:
      return SourceKind::kFile;
  }
}

Status LookAtFile(Source& source) {
  struct statx info{};
  if (::statx(source.fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &info) != 0) {
    return FailErrno(errno, "look at '{}'", source.path);
  }
  source.kind = KindOf(info.stx_mode);
  source.mode = info.stx_mode & 07777U;
  source.uid = info.stx_uid;
  source.gid = info.stx_gid;
  source.identity =
      Format("{}:{}:{}:{}", info.stx_mnt_id, info.stx_dev_major, info.stx_dev_minor, info.stx_ino);
  return {};
}

Status LookAtFileSystem(Source& source) {
  struct statfs info{};
  if (::fstatfs(source.fd.get(), &info) != 0) {
    return FailErrno(errno, "look at the file system of '{}'", source.path);
  }
  source.file_system = static_cast<int64_t>(info.f_type);
  source.block_bytes = static_cast<uint64_t>(info.f_bsize);
  source.file_system_bytes = static_cast<uint64_t>(info.f_blocks) * source.block_bytes;
  return {};
}

}  // namespace

Result<Source> LookAt(const std::string& path) {
  if (!path.starts_with('/')) {
    return Fail(Code::kInvalidArgument, "source '{}': must be an absolute path", path);
  }
  Source source;
  source.path = path;
  source.fd.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!source.fd) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Fail(Code::kInvalidArgument, "source '{}': there is nothing", path);
    }
    return FailErrno(errno, "source '{}'", path);
  }
  GANTRY_CHECK_OK(LookAtFile(source));
  GANTRY_CHECK_OK(LookAtFileSystem(source));
  GANTRY_TRY(source.path, ReadLink(Format("/proc/self/fd/{}", source.fd.get())));
  return source;
}

std::string_view KindName(SourceKind kind) {
  switch (kind) {
    case SourceKind::kDirectory:
      return "a directory";
    case SourceKind::kFile:
      return "a file";
    case SourceKind::kBlockDevice:
      return "a block device";
    case SourceKind::kCharDevice:
      return "a character device";
    case SourceKind::kSocket:
      return "a socket";
    case SourceKind::kFifo:
      return "a FIFO";
  }
  return "";
}

}  // namespace gantry::vmm
