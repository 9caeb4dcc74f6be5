// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include <gantry/toolkit/files/files.h>

#include "plugins/wasm/cache/artifact_file.h"

namespace gantry::wasm {
namespace {

constexpr int64_t kHourSeconds = 3600;
constexpr int64_t kWeek = kHourSeconds * 24 * 7;
/// Folders and files that are gone through at a time.
constexpr size_t kMaxFiles = size_t{1} << 16;
constexpr char kVersion[] = "v1";

std::string FolderOf(const std::string& key) { return key.substr(0, 2); }

void SetUsed(int folder, const std::string& name, int64_t now) {
  const std::array<timespec, 2> times = {{{now, 0}, {now, 0}}};
  // Where it cannot be told it goes earlier than others.
  static_cast<void>(utimensat(folder, name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW));
}

}  // namespace

struct ArtifactStore::File {
  std::string folder;
  std::string name;
  uint64_t bytes = 0;
  int64_t used_at = 0;
  /// Empty: it is no entry, or a damaged one.
  std::optional<EntryHeader> header{};
};

Result<UniqueFd> ArtifactStore::OpenRoot(bool make) const {
  if (make) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(directory_).parent_path(), failed);
    if (failed) {
      return FailErrno(failed.value(), "make the parents of '{}'", directory_);
    }
  }
  GANTRY_TRY(const UniqueFd directory, OpenPrivateFolder(AT_FDCWD, directory_, make));
  return OpenPrivateFolder(directory.get(), kVersion, make);
}

Result<UniqueFd> ArtifactStore::OpenFolder(const std::string& key, bool make) const {
  GANTRY_TRY(const UniqueFd root, OpenRoot(make));
  return OpenPrivateFolder(root.get(), FolderOf(key), make);
}

Result<ArtifactStore::Found> ArtifactStore::Load(const EntryId& id, int64_t now) const {
  const std::string key = id.Key();
  const std::string what =
      Format("read the compiled module '{}/{}/{}/{}'", directory_, kVersion, FolderOf(key), key);
  auto folder = OpenFolder(key, false);
  if (!folder) {
    return std::unexpected(std::move(folder).error().Within(what));
  }
  const auto load = [&]() -> Result<Found> {
    GANTRY_TRY(const EntryFile entry, OpenEntry(*folder, key));
    if (entry.header.id != id) {
      return Fail(Code::kDataLoss, "it is of another module or compiler");
    }
    if (entry.header.kept_until < now) {
      return Fail(Code::kNotFound, "it is kept no longer");
    }
    GANTRY_TRY(UniqueFd content, CopyContent(entry));
    if (entry.used_at + kHourSeconds <= now) {
      SetUsed(folder->get(), key, now);
    }
    return Found{entry.header, std::move(content)};
  };
  Result<Found> found = load();
  if (!found && found.error().code == Code::kDataLoss) {
    // Nobody is served by it. Where it cannot be removed, it is refused the next time, too.
    IgnoreError(RemoveTreeAt(folder->get(), key), "it is replaced where it can be");
  }
  return found ? std::move(found) : std::unexpected(std::move(found).error().Within(what));
}

Status ArtifactStore::Save(EntryHeader header, const UniqueFd& content, int64_t now) const {
  const std::string key = header.id.Key();
  const auto save = [&]() -> Status {
    GANTRY_TRY(const UniqueFd folder, OpenFolder(key, true));
    GANTRY_CHECK_OK(WriteEntry(folder, key, header, content));
    SetUsed(folder.get(), key, now);
    return {};
  };
  Status saved = save();
  return saved ? std::move(saved)
               : std::unexpected(std::move(saved).error().Within(
                     Format("keep the compiled module '{}/{}/{}/{}'", directory_, kVersion,
                            FolderOf(key), key)));
}

void ArtifactStore::Touch(const EntryId& id, int64_t now) const {
  const std::string key = id.Key();
  const auto folder = OpenFolder(key, false);
  struct stat info = {};
  if (folder && fstatat(folder->get(), key.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      info.st_mtim.tv_sec + kHourSeconds <= now) {
    SetUsed(folder->get(), key, now);
  }
}

Result<std::vector<ArtifactStore::File>> ArtifactStore::Files(const UniqueFd& root,
                                                              int64_t now) const {
  std::vector<File> files;
  const std::string at = Format("/proc/self/fd/{}", root.get());
  GANTRY_TRY(const auto folders, ListDirectory(at, kMaxFiles));
  for (const std::string& folder : folders) {
    auto open = OpenPrivateFolder(root.get(), folder, false);
    if (!open) {
      continue;
    }
    GANTRY_TRY(const auto names, ListDirectory(Format("/proc/self/fd/{}", open->get()), kMaxFiles));
    for (const std::string& name : names) {
      File file{.folder = folder, .name = name};
      struct stat info = {};
      if (fstatat(open->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      file.bytes = static_cast<uint64_t>(info.st_size);
      // A clock that was wrong once keeps nothing for ever.
      file.used_at = std::min<int64_t>(info.st_mtim.tv_sec, now);
      if (auto entry = OpenEntry(*open, name); entry && name == entry->header.id.Key()) {
        file.header = entry->header;
      }
      files.push_back(std::move(file));
    }
  }
  std::ranges::sort(files, {}, &File::used_at);
  return files;
}

Result<ArtifactStore::Kept> ArtifactStore::Remove(int64_t now, uint64_t max_bytes,
                                                  const Goes& goes) const {
  auto root = OpenRoot(false);
  if (!root && root.error().code == Code::kNotFound) {
    return Kept{};
  }
  if (!root) {
    return std::unexpected(std::move(root).error());
  }
  GANTRY_TRY(const std::vector<File> files, Files(*root, now));
  Kept kept;
  for (const File& file : files) {
    ++kept.entries;
    kept.bytes += file.bytes;
  }
  for (const File& file : files) {
    if (kept.bytes <= max_bytes && !goes(file)) {
      continue;
    }
    const auto folder = OpenPrivateFolder(root->get(), file.folder, false);
    if (folder && RemoveTreeAt(folder->get(), file.name)) {
      --kept.entries;
      ++kept.removed;
      kept.bytes -= file.bytes;
    }
  }
  return kept;
}

Result<ArtifactStore::Kept> ArtifactStore::Trim(const Sha256Digest& compiler, int64_t now) const {
  return Remove(now, max_bytes_, [&](const File& file) {
    if (!file.header) {
      // One that is being written is young.
      return !file.name.starts_with(kUnfinished) || file.used_at + kHourSeconds < now;
    }
    return file.header->kept_until < now ||
           (file.header->id.compiler != compiler && file.used_at + kWeek < now);
  });
}

Result<ArtifactStore::Kept> ArtifactStore::Clean(const std::set<Sha256Digest>& used, int64_t before,
                                                 int64_t now) const {
  return Remove(now, std::numeric_limits<uint64_t>::max(), [&](const File& file) {
    return file.header && file.used_at < before && !used.contains(file.header->id.module);
  });
}

Result<std::vector<ArtifactStore::Listed>> ArtifactStore::List() const {
  std::vector<Listed> all;
  auto root = OpenRoot(false);
  if (!root && root.error().code == Code::kNotFound) {
    return all;
  }
  if (!root) {
    return std::unexpected(std::move(root).error());
  }
  GANTRY_TRY(std::vector<File> files, Files(*root, EntryHeader::kForEver));
  for (File& file : files) {
    if (file.header) {
      all.push_back({std::move(file.name), *file.header, file.bytes, file.used_at});
    }
  }
  return all;
}

}  // namespace gantry::wasm
