// SPDX-License-Identifier: Apache-2.0
#include "core/door/folders.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <utility>

#include <gantry/ids.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::door {
namespace {

constexpr std::string_view kAddressFile = "/address";
constexpr std::string_view kStageFile = "/stage";
constexpr size_t kMaxFileBytes = 4096;
/// Containers of a user namespace find their files in it, and nobody lists it.
constexpr mode_t kFolderMode = 0711;

constexpr std::array<std::pair<Stage, std::string_view>, 4> kStages = {{
    {Stage::kCreating, "creating"},
    {Stage::kCreated, "created"},
    {Stage::kStarting, "starting"},
    {Stage::kStarted, "started"},
}};

Status CheckKey(const SandboxKey& key) {
  GANTRY_TRY([[maybe_unused]] const Namespace ns, Namespace::Parse(key.ns));
  GANTRY_TRY([[maybe_unused]] const SandboxId id, SandboxId::Parse(key.id));
  return {};
}

}  // namespace

std::string_view StageName(Stage stage) {
  for (const auto& [one, name] : kStages) {
    if (one == stage) {
      return name;
    }
  }
  return "?";
}

Status Folders::Make(const SandboxKey& key) const {
  GANTRY_CHECK_OK(CheckKey(key));
  GANTRY_CHECK_OK(os::MakeDirs(root_ + "/" + key.ns, kFolderMode));
  const std::string path = PathOf(key);
  if (mkdir(path.c_str(), kFolderMode) != 0) {
    if (errno == EEXIST) {
      return Fail(Code::kAlreadyExists, "create sandbox '{}': already exists", key.id);
    }
    return FailErrno(errno, "make the folder '{}'", path);
  }
  return SetStage(key, Stage::kCreating);
}

Status Folders::SetAddress(const SandboxKey& key, std::string_view socket) const {
  return ReplaceFile(PathOf(key).append(kAddressFile), socket, 0600);
}

Status Folders::SetStage(const SandboxKey& key, Stage stage) const {
  return ReplaceFile(PathOf(key).append(kStageFile), StageName(stage), 0600);
}

Result<std::string> Folders::Address(const SandboxKey& key) const {
  GANTRY_CHECK_OK(CheckKey(key));
  Result<std::string> address = ReadFile(PathOf(key).append(kAddressFile), kMaxFileBytes);
  if (!address && address.error().code == Code::kNotFound) {
    return Fail(Code::kNotFound, "sandbox '{}': not found", key.id);
  }
  return address;
}

Status Folders::Remove(const SandboxKey& key) const {
  GANTRY_CHECK_OK(CheckKey(key));
  const Status removed = RemoveTree(PathOf(key));
  return !removed && removed.error().code == Code::kNotFound ? Status() : removed;
}

Stage Folders::StageOf(const SandboxKey& key) const {
  const Result<std::string> text = ReadFile(PathOf(key).append(kStageFile), kMaxFileBytes);
  for (const auto& [stage, name] : kStages) {
    if (text && *text == name) {
      return stage;
    }
  }
  return Stage::kCreating;
}

Result<std::vector<Folders::Left>> Folders::All() const {
  std::vector<Left> all;
  Result<std::vector<std::string>> namespaces = ListDirectory(root_);
  if (!namespaces) {
    if (namespaces.error().code == Code::kNotFound) {
      return all;
    }
    return std::unexpected(std::move(namespaces).error());
  }
  for (const std::string& ns : *namespaces) {
    GANTRY_TRY(const std::vector<std::string> ids, ListDirectory(root_ + "/" + ns));
    for (const std::string& id : ids) {
      const SandboxKey key{ns, id};
      if (CheckKey(key)) {
        all.push_back({key, StageOf(key)});
      }
    }
  }
  return all;
}

}  // namespace gantry::door
