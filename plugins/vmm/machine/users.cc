// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/users.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {
namespace {

std::string Folder(const VmmOptions& options) { return options.directory + "/users"; }

/// The folder, locked as long as the descriptor is there.
Result<UniqueFd> Lock(const VmmOptions& options) {
  const std::string folder = Folder(options);
  constexpr mode_t kMode = 0700;
  if (mkdir(folder.c_str(), kMode) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", folder);
  }
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || flock(fd.get(), LOCK_EX) != 0) {
    return FailErrno(errno, "lock '{}'", folder);
  }
  return fd;
}

/// The link is this VM's now. False: it is another one's.
Result<bool> Take(const std::string& link, const std::string& directory) {
  if (symlink(directory.c_str(), link.c_str()) == 0) {
    return true;
  }
  if (errno != EEXIST) {
    return FailErrno(errno, "make '{}'", link);
  }
  const std::string owner = ReadLink(link).value_or(std::string());
  if (owner == directory) {
    return true;
  }
  if (!owner.empty() && Exists(owner)) {
    return false;
  }
  GANTRY_CHECK_OK(RemoveFile(link));
  if (symlink(directory.c_str(), link.c_str()) != 0) {
    return FailErrno(errno, "make '{}'", link);
  }
  return true;
}

}  // namespace

Result<std::optional<uint32_t>> TakeUser(const VmmOptions& options, const std::string& directory) {
  if (options.users == 0) {
    return std::nullopt;
  }
  GANTRY_TRY(const UniqueFd lock, Lock(options));
  const uint64_t first = Fingerprint(directory);
  for (uint32_t i = 0; i < options.users; ++i) {
    const uint32_t user = options.first_user + static_cast<uint32_t>((first + i) % options.users);
    GANTRY_TRY(const bool taken, Take(Format("{}/{}", Folder(options), user), directory));
    if (taken) {
      return user;
    }
  }
  return Fail(Code::kResourceExhausted,
              "choose a user for the VM in '{}': all {} are taken: allow more by the option "
              "'users'",
              directory, options.users);
}

Status GiveUser(const VmmOptions& options, const std::string& from, const std::string& to,
                uint32_t user) {
  GANTRY_TRY(const UniqueFd lock, Lock(options));
  const std::string link = Format("{}/{}", Folder(options), user);
  const std::string owner = ReadLink(link).value_or(std::string());
  if (owner != from && owner != to) {
    return Fail(Code::kFailedPrecondition, "give user {} to '{}': it is not that of '{}'", user, to,
                from);
  }
  // Whoever looks meanwhile waits for the lock.
  GANTRY_CHECK_OK(RemoveFile(link));
  if (symlink(to.c_str(), link.c_str()) != 0) {
    return FailErrno(errno, "make '{}'", link);
  }
  return {};
}

void FreeUser(const VmmOptions& options, const std::string& directory, uint32_t user) {
  const auto lock = Lock(options);
  const std::string link = Format("{}/{}", Folder(options), user);
  if (lock && ReadLink(link).value_or(std::string()) == directory) {
    IgnoreError(RemoveFile(link), "it is free all the same when its sandbox is gone");
  }
}

}  // namespace gantry::vmm
