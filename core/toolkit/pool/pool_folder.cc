// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/pool/pool_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

namespace gantry {
namespace {

constexpr const char* kFolder = "/warm";
constexpr const char* kProcess = "/process";
constexpr mode_t kMode = 0700;
constexpr size_t kMaxProcess = 64;

Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), kMode) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", path);
  }
  return {};
}

Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    GANTRY_CHECK_OK(MakeDirectory(path.substr(0, slash)));
  }
  return MakeDirectory(path);
}

/// `how`: of flock(2). The lock goes when the descriptor is closed, with its process at the
/// latest: it is never inherited.
Result<UniqueFd> Lock(const std::string& path, int how) {
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder || flock(folder.get(), how) != 0) {
    return FailErrno(errno, "lock '{}'", path);
  }
  return folder;
}

/// Not one that has its number by now.
void EndProcess(HostPid pid, uint64_t start_time) {
  const auto pidfd = OpenPidfd(pid);
  const auto started = StartTimeOf(pid);
  if (pidfd && started && *started == start_time) {
    KillProcess(*pidfd);
  }
}

void EndNoted(const std::string& entry) {
  const std::string text = ReadFile(entry + kProcess, kMaxProcess).value_or("");
  const size_t space = text.find(' ');
  if (space == std::string::npos) {
    return;
  }
  const auto pid = ParseNumber(text.substr(0, space));
  const auto start_time = ParseNumber(text.substr(space + 1));
  if (pid && start_time) {
    EndProcess({static_cast<int32_t>(*pid)}, static_cast<uint64_t>(*start_time));
  }
}

/// Those of engines that are gone.
void RemoveLeft(const std::string& all) {
  for (const std::string& name : ListDirectory(all).value_or(std::vector<std::string>())) {
    const std::string path = Format("{}/{}", all, name);
    if (const auto lock = Lock(path, LOCK_EX | LOCK_NB)) {
      for (const std::string& entry : ListDirectory(path).value_or(std::vector<std::string>())) {
        EndNoted(Format("{}/{}", path, entry));
      }
      IgnoreError(RemoveTree(path), "the next one tries again");
    }
  }
}

}  // namespace

Result<std::unique_ptr<PoolFolder>> PoolFolder::Make(const std::string& root) {
  const std::string all = root + kFolder;
  GANTRY_CHECK_OK(MakeDirectories(all));
  // Nobody takes one for left that is only being made.
  GANTRY_TRY(const UniqueFd alone, Lock(all, LOCK_EX));
  RemoveLeft(all);
  std::string path = all + "/XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return FailErrno(errno, "make a directory in '{}'", all);
  }
  GANTRY_TRY(UniqueFd lock, Lock(path, LOCK_EX | LOCK_NB));
  return std::unique_ptr<PoolFolder>(new PoolFolder(std::move(path), std::move(lock)));
}

PoolFolder::~PoolFolder() { IgnoreError(RemoveTree(path_), "the next engine tries again"); }

Result<std::string> PoolFolder::NewEntry() {
  std::string path = Format("{}/{}", path_, ++entries_);
  GANTRY_CHECK_OK(MakeDirectory(path));
  return path;
}

Status NoteProcess(const std::string& entry, const HostProcess& process) {
  return WriteFile(entry + kProcess, Format("{} {}", process.pid().value, process.start_time()),
                   0600);
}

Status ForgetProcess(const std::string& entry) { return RemoveFile(entry + kProcess); }

}  // namespace gantry
