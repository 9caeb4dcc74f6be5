// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a node have to agree on: who makes an entry, and who cleans.
//
// One file has all locks, each of them a byte of it that is not there: so none is left behind by
// who ends, and none has to be removed. Source: fcntl(2), "Open file description locks".
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include <gantry/format.h>

#include "plugins/wasm/cache/artifact_file.h"
#include "plugins/wasm/cache/store.h"

namespace gantry::wasm {
namespace {

constexpr char kLocks[] = "locks";
/// Its time is that of the last cleaning.
constexpr char kCleaned[] = "cleaned";
constexpr mode_t kMode = 0600;

/// Two entries that have one are made one after the other, which does no harm.
off_t PlaceOf(const EntryId& id) {
  constexpr size_t kDigits = 15;
  return static_cast<off_t>(std::stoull(id.Key().substr(0, kDigits), nullptr, 16));
}

/// A file of the directory, which is made where there is none.
Result<UniqueFd> OpenOwn(const std::string& directory, const char* name) {
  GANTRY_TRY(const UniqueFd folder, OpenPrivateFolder(AT_FDCWD, directory, false));
  UniqueFd file(
      openat(folder.get(), name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kMode));
  return file ? Result<UniqueFd>(std::move(file)) : FailErrno(errno, "open '{}'", name);
}

}  // namespace

Result<UniqueFd> ArtifactStore::Lock(const EntryId& id) const {
  const std::string what = Format("lock the compiled module '{}/{}'", directory_, id.Key());
  // Made with its parents.
  if (auto root = OpenRoot(true); !root) {
    return std::unexpected(std::move(root).error().Within(what));
  }
  auto file = OpenOwn(directory_, kLocks);
  if (!file) {
    return std::unexpected(std::move(file).error().Within(what));
  }
  struct flock place = {};
  place.l_type = F_WRLCK;
  place.l_whence = SEEK_SET;
  place.l_start = PlaceOf(id);
  place.l_len = 1;
  if (fcntl(file->get(), F_OFD_SETLK, &place) != 0) {
    return errno == EAGAIN || errno == EACCES
               ? Fail(Code::kAborted, "{}: another process compiles it", what)
               : FailErrno(errno, "{}", what);
  }
  return file;
}

Result<bool> ArtifactStore::IsToBeCleaned(int64_t now, int64_t every) const {
  GANTRY_CHECK_OK(OpenRoot(true));
  GANTRY_TRY(const UniqueFd file, OpenOwn(directory_, kCleaned));
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", kCleaned);
  }
  // A file that has just been made has a byte less than one that says something.
  const bool said = info.st_size > 0;
  if (said && info.st_mtim.tv_sec + every > now && info.st_mtim.tv_sec <= now) {
    return false;
  }
  const std::array<timespec, 2> times = {{{now, 0}, {now, 0}}};
  if (ftruncate(file.get(), 1) != 0 || futimens(file.get(), times.data()) != 0) {
    return FailErrno(errno, "note the time in '{}'", kCleaned);
  }
  return said;
}

}  // namespace gantry::wasm
