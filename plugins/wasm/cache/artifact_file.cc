// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/artifact_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::wasm {
namespace {

constexpr mode_t kFileMode = 0400;
constexpr mode_t kFolderMode = 0700;
constexpr size_t kPiece = size_t{256} << 10;

/// Empty: it is the caller's alone, and has no other name.
std::string WhatIsWrong(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) {
    return "it is no regular file";
  }
  if (info.st_uid != geteuid()) {
    return Format("it belongs to user {}", info.st_uid);
  }
  if ((info.st_mode & 07777) != kFileMode) {
    return Format("its mode is {:o}", info.st_mode & 07777);
  }
  return info.st_nlink != 1 ? "it has a second name" : "";
}

/// `length` bytes of `from` after `skip` to `to` at `at`, all of them added to `hash`.
Status CopyHashed(int from, uint64_t skip, uint64_t length, int to, uint64_t at, Sha256& hash) {
  for (uint64_t done = 0; done < length;) {
    const size_t wanted = std::min<uint64_t>(kPiece, length - done);
    GANTRY_TRY(const std::string piece, ReadAt(from, skip + done, wanted));
    if (piece.size() != wanted) {
      return Fail(Code::kDataLoss, "it is cut off");
    }
    hash.Add(piece);
    GANTRY_CHECK_OK(WriteAt(to, at + done, piece));
    done += wanted;
  }
  return {};
}

Status WriteAll(const UniqueFd& to, EntryHeader& header, const UniqueFd& content) {
  Sha256 hash;
  header.AddTo(hash);
  GANTRY_CHECK_OK(CopyHashed(content.get(), 0, header.length, to.get(), EntryHeader::kSize, hash));
  header.hash = hash.Finish();
  GANTRY_CHECK_OK(WriteAt(to.get(), 0, header.Encode()));
  if (fchmod(to.get(), kFileMode) != 0 || fsync(to.get()) != 0) {
    return FailErrno(errno, "sync it");
  }
  return {};
}

}  // namespace

Result<EntryFile> OpenEntry(const UniqueFd& folder, const std::string& name) {
  EntryFile entry;
  entry.file.reset(
      openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!entry.file) {
    return errno == ELOOP ? Fail(Code::kDataLoss, "it is a link") : FailErrno(errno, "open it");
  }
  struct stat info = {};
  if (fstat(entry.file.get(), &info) != 0) {
    return FailErrno(errno, "look at it");
  }
  if (std::string wrong = WhatIsWrong(info); !wrong.empty()) {
    return Fail(Code::kDataLoss, "{}", wrong);
  }
  GANTRY_TRY(const std::string bytes, ReadAt(entry.file.get(), 0, EntryHeader::kSize));
  GANTRY_TRY(entry.header, EntryHeader::Decode(bytes));
  entry.bytes = static_cast<uint64_t>(info.st_size);
  entry.used_at = info.st_mtim.tv_sec;
  if (entry.bytes != EntryHeader::kSize + entry.header.length) {
    return Fail(Code::kDataLoss, "it has {} bytes, not {}", entry.bytes,
                EntryHeader::kSize + entry.header.length);
  }
  return entry;
}

Result<UniqueFd> CopyContent(const EntryFile& entry) {
  GANTRY_TRY(const UniqueFd copy, CreateSealableMemfd("wasm-artifact", MemfdUse::kRead));
  Sha256 hash;
  entry.header.AddTo(hash);
  GANTRY_CHECK_OK(
      CopyHashed(entry.file.get(), EntryHeader::kSize, entry.header.length, copy.get(), 0, hash));
  if (hash.Finish() != entry.header.hash) {
    return Fail(Code::kDataLoss, "its content is not what was written");
  }
  GANTRY_CHECK_OK(SealMemfd(copy.get()));
  return ReopenForReading(copy);
}

Status WriteEntry(const UniqueFd& folder, const std::string& name, EntryHeader header,
                  const UniqueFd& content) {
  const std::string unfinished = Format("{}{}", kUnfinished, RandomName(12));
  const UniqueFd file(openat(folder.get(), unfinished.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file) {
    return FailErrno(errno, "make it");
  }
  Status written = WriteAll(file, header, content);
  if (written && renameat(folder.get(), unfinished.c_str(), folder.get(), name.c_str()) != 0) {
    written = FailErrno(errno, "give it its name");
  }
  if (!written) {
    unlinkat(folder.get(), unfinished.c_str(), 0);
    return written;
  }
  if (fsync(folder.get()) != 0) {
    return FailErrno(errno, "sync its folder");
  }
  return {};
}

Result<UniqueFd> OpenPrivateFolder(int parent, const std::string& name, bool make) {
  if (make && mkdirat(parent, name.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", name);
  }
  UniqueFd folder(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) {
    return errno == ELOOP || errno == ENOTDIR
               ? Fail(Code::kFailedPrecondition, "open '{}': it is a link or no directory", name)
               : FailErrno(errno, "open '{}'", name);
  }
  struct stat info = {};
  if (fstat(folder.get(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", name);
  }
  if (info.st_uid != geteuid() || (info.st_mode & 0022) != 0) {
    return Fail(Code::kFailedPrecondition,
                "open '{}': it belongs to user {} and has mode {:o}; it has to be of user {}, with "
                "mode 700",
                name, info.st_uid, info.st_mode & 07777, geteuid());
  }
  return folder;
}

}  // namespace gantry::wasm
