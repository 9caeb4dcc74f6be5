// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/template/template_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount.h>

#include "plugins/vmm/machine/directory.h"

namespace gantry::vmm {
namespace {

constexpr const char* kState = "/state";
constexpr const char* kKey = "/key";
constexpr size_t kMaxKey = size_t{64} << 10;
constexpr mode_t kPassage = 0711;
constexpr mode_t kOwnersFile = 0600;
/// A VM that is restored runs as another user than the one that it was made of, and gets it open.
constexpr mode_t kReadersFile = 0400;

std::string NameOf(const std::string& key) { return Format("{:016x}", Fingerprint(key)); }

Status RemoveAt(const std::string& path) {
  GANTRY_CHECK_OK(DetachMount(path));
  return RemoveTree(path);
}

}  // namespace

std::string TemplateStore::PathOf(const std::string& key) const {
  return folder_ + "/" + NameOf(key);
}

std::optional<std::string> TemplateStore::Find(const std::string& key) const {
  std::string path = PathOf(key);
  const auto kept = ReadFile(path + kKey, kMaxKey);
  return kept && *kept == key ? std::optional(std::move(path)) : std::nullopt;
}

Status TemplateStore::MakeFolder() const {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path().parent_path(),
                                      failed);
  for (const std::string& path : {std::filesystem::path(folder_).parent_path().string(), folder_}) {
    if (mkdir(path.c_str(), kPassage) == 0 ? chmod(path.c_str(), kPassage) != 0 : errno != EEXIST) {
      return FailErrno(errno, "make '{}'", path);
    }
  }
  return {};
}

Result<UniqueFd> TemplateStore::Lock() const {
  GANTRY_CHECK_OK(MakeFolder());
  UniqueFd lock(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock) {
    return FailErrno(errno, "open '{}'", folder_);
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(Code::kAborted, "lock '{}': another engine makes a template just now", folder_);
  }
  return lock;
}

Result<std::string> TemplateStore::Begin(const std::string& key, uint64_t bytes,
                                         const MachineUser& user) const {
  std::string path = PathOf(key);
  GANTRY_CHECK_OK(RemoveAt(path));
  GANTRY_CHECK_OK(
      mount::MountAll(path,
                      {{.type = "tmpfs",
                        .source = "gantry-template",
                        .options = {"nosuid", "nodev", "noexec", Format("size={}", bytes),
                                    "nr_inodes=16", "mode=0711"}}},
                      folder_ + "/scratch"));
  const std::string state = path + kState;
  GANTRY_CHECK_OK(WriteFile(state, "", kOwnersFile));
  if (user.uid && lchown(state.c_str(), *user.uid, user.gid) != 0) {
    return FailErrno(errno, "give '{}' to user {}", state, *user.uid);
  }
  return path;
}

Status TemplateStore::Finish(const std::string& key) const {
  const std::string path = PathOf(key);
  const std::string state = path + kState;
  if (lchown(state.c_str(), 0, 0) != 0 || chmod(state.c_str(), kReadersFile) != 0) {
    return FailErrno(errno, "take '{}' from its VMM", state);
  }
  return WriteFile(path + kKey, key, kOwnersFile);
}

Status TemplateStore::Remove(const std::string& key) const { return RemoveAt(PathOf(key)); }

Status TemplateStore::RemoveOthers(const std::vector<std::string>& keys) const {
  GANTRY_TRY(const auto names, ListDirectory(folder_));
  for (const std::string& name : names) {
    if (std::ranges::none_of(keys, [&](const auto& key) { return NameOf(key) == name; })) {
      GANTRY_CHECK_OK(RemoveAt(folder_ + "/" + name));
    }
  }
  return {};
}

}  // namespace gantry::vmm
