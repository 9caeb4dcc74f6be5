// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/console.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <gantry/format.h>

#include "core/toolkit/container/proc_files.h"

namespace gantry::container {
namespace {

// Source: Documentation/admin-guide/devices.txt.
constexpr unsigned kPtmxMajor = 5;
constexpr unsigned kPtmxMinor = 2;

Result<UniqueFd> OpenMaster() {
  constexpr const char* kPlace = "/dev/pts/ptmx";
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS;
  const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd place(static_cast<int>(::syscall(SYS_openat2, root.get(), kPlace, &how, sizeof(how))));
  if (!place) {
    return FailErrno(errno, "open '{}' for the terminal: is a devpts mounted there?", kPlace);
  }
  struct stat about{};
  struct statfs system{};
  if (::fstat(place.get(), &about) != 0 || ::fstatfs(place.get(), &system) != 0) {
    return FailErrno(errno, "look at '{}'", kPlace);
  }
  if (!S_ISCHR(about.st_mode) || about.st_rdev != makedev(kPtmxMajor, kPtmxMinor) ||
      system.f_type != DEVPTS_SUPER_MAGIC) {
    return Fail(Code::kFailedPrecondition, "open '{}' for the terminal: it is not of a devpts",
                kPlace);
  }
  return place;
}

}  // namespace

Result<Terminal> OpenTerminal(int proc, const std::optional<ConsoleSize>& size, uid_t owner) {
  GANTRY_TRY(const UniqueFd place, OpenMaster());
  GANTRY_TRY(const std::string folder, OwnFolder(proc));
  Terminal terminal;
  // What was looked at, whatever is at the path by now: by a link of the maker's /proc.
  const std::string file = Format("{}/fd/{}", folder, place.get());
  terminal.master.reset(::openat(proc, file.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.master) {
    return FailErrno(errno, "open a terminal");
  }
  int unlocked = 0;
  if (::ioctl(terminal.master.get(), TIOCSPTLCK, &unlocked) != 0) {
    return FailErrno(errno, "unlock a terminal");
  }
  terminal.replica.reset(
      ::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.replica) {
    return FailErrno(errno, "open the other side of a terminal");
  }
  if (size) {
    winsize now{};
    now.ws_col = size->width;
    now.ws_row = size->height;
    if (::ioctl(terminal.master.get(), TIOCSWINSZ, &now) != 0) {
      return FailErrno(errno, "set the size of a terminal");
    }
  }
  if (::fchown(terminal.replica.get(), owner, static_cast<gid_t>(-1)) != 0) {
    return FailErrno(errno, "give a terminal to user {}", owner);
  }
  return terminal;
}

Status TakeTerminal(int terminal) {
  if (::ioctl(terminal, TIOCSCTTY, 0) != 0) {
    return FailErrno(errno, "make a terminal the controlling one");
  }
  return {};
}

}  // namespace gantry::container
