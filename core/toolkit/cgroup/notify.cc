// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gantry/toolkit/cgroup/notify.h>

namespace gantry::cgroup {

Result<CgroupNotify> CgroupNotify::Open(const std::string& path) {
  CgroupNotify out;
  out.path_ = path;
  out.file_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!out.file_) {
    return FailErrno(errno, "open '{}'", path);
  }
  struct statfs info{};
  if (fstatfs(out.file_.get(), &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) {
    return out;
  }
  out.inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!out.inotify_ ||
      inotify_add_watch(out.inotify_.get(), path.c_str(), IN_MODIFY | IN_DELETE_SELF) < 0) {
    return FailErrno(errno, "watch '{}'", path);
  }
  return out;
}

uint32_t CgroupNotify::poll_events() const { return inotify_ ? EPOLLIN : EPOLLPRI; }

Result<std::string> CgroupNotify::Read() {
  std::array<char, 4096> buffer{};
  while (inotify_ && read(inotify_.get(), buffer.data(), buffer.size()) > 0) {
  }
  struct stat info{};
  if (inotify_ && fstat(file_.get(), &info) == 0 && info.st_nlink == 0) {
    return Fail(Code::kNotFound, "read '{}': the file is gone", path_);
  }
  const ssize_t got = pread(file_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) {
    return errno == ENODEV ? Fail(Code::kNotFound, "read '{}': the cgroup is gone", path_)
                           : FailErrno(errno, "read '{}'", path_);
  }
  return std::string(buffer.data(), static_cast<size_t>(got));
}

Status WaitForCgroupFile(const std::string& path, Deadline deadline,
                         const std::function<bool(std::string_view)>& done) {
  GANTRY_TRY(CgroupNotify notify, CgroupNotify::Open(path));
  for (;;) {
    GANTRY_TRY(const std::string text, notify.Read());
    if (done(text)) {
      return {};
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Fail(Code::kDeadlineExceeded, "wait for '{}': no change in time", path);
    }
    pollfd wait{
        .fd = notify.poll_fd(), .events = static_cast<short>(notify.poll_events()), .revents = 0};
    poll(&wait, 1, static_cast<int>(left.count()));
  }
}

}  // namespace gantry::cgroup
