// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ranges>
#include <string>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>
#include <gantry/toolkit/process/pid_of.h>

namespace gantry::mount {
namespace {

/// A process that does nothing but hold a user namespace. It shares the table of descriptors, so
/// it keeps none of them open, and gives no SIGCHLD to whoever reaps here. Ends with this object.
class NamespaceHolder {
 public:
  NamespaceHolder() {
    clone_args args{};
    int pidfd = -1;
    args.flags = CLONE_NEWUSER | CLONE_FILES | CLONE_PIDFD;
    args.pidfd = reinterpret_cast<__u64>(&pidfd);
    const pid_t maker = getpid();
    const long child = syscall(SYS_clone3, &args, sizeof(args));
    if (child == 0) {
      // Only system calls from here: this may be a copy of a process with threads.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // Who has ended before that gives no signal.
      while (syscall(SYS_getppid) == maker) {
        syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
      }
      syscall(SYS_exit, 0);
    }
    error_ = child < 0 ? errno : 0;
    pidfd_.reset(pidfd);
  }

  NamespaceHolder(const NamespaceHolder&) = delete;
  NamespaceHolder& operator=(const NamespaceHolder&) = delete;

  ~NamespaceHolder() {
    if (pidfd_) {
      syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
      siginfo_t info{};
      while (waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | __WALL) != 0 &&
             errno == EINTR) {
      }
    }
  }

  int error() const { return error_; }

  int pidfd() const { return pidfd_.get(); }

 private:
  int error_ = 0;
  UniqueFd pidfd_;
};

Status WriteMappings(const std::string& file, const std::vector<IdMapping>& mappings) {
  const std::string text = IdMapText(mappings);
  Status written = WriteExisting(file, text);
  if (!written && written.error().sys_errno == EINVAL) {
    return std::unexpected(Error{Code::kInvalidArgument, EINVAL,
                                 "id mappings: the kernel refuses them: " + text, std::string()});
  }
  return written;
}

Result<uint32_t> ParseId(std::string_view text, std::string_view whole) {
  uint32_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    return Fail(Code::kInvalidArgument, "id mapping '{}': not of the form inside:outside:count",
                whole);
  }
  return value;
}

}  // namespace

Result<std::vector<IdMapping>> ParseIdMappings(std::string_view text) {
  std::vector<IdMapping> ranges;
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view range(part);
    const size_t first = range.find(':');
    const size_t second = first == range.npos ? range.npos : range.find(':', first + 1);
    if (second == range.npos) {
      return Fail(Code::kInvalidArgument, "id mapping '{}': not of the form inside:outside:count",
                  text);
    }
    IdMapping parsed;
    GANTRY_TRY(parsed.container_id, ParseId(range.substr(0, first), text));
    GANTRY_TRY(parsed.host_id, ParseId(range.substr(first + 1, second - first - 1), text));
    GANTRY_TRY(parsed.length, ParseId(range.substr(second + 1), text));
    ranges.push_back(parsed);
  }
  if (ranges.empty()) {
    return Fail(Code::kInvalidArgument, "id mapping '{}': empty", text);
  }
  return ranges;
}

std::string IdMapText(const std::vector<IdMapping>& mappings) {
  std::string text;
  for (const IdMapping& mapping : mappings) {
    text += Format("{} {} {}\n", mapping.container_id, mapping.host_id, mapping.length);
  }
  return text;
}

Result<UniqueFd> NewUserNamespace(const std::vector<IdMapping>& uids,
                                  const std::vector<IdMapping>& gids) {
  if (uids.empty() || gids.empty()) {
    return Fail(Code::kInvalidArgument,
                "id mappings: there have to be some of users and of groups");
  }
  const NamespaceHolder holder;
  if (holder.error() != 0) {
    return FailErrno(holder.error(), "make a user namespace");
  }
  // By the number that it has in /proc, which need not be the one that it has in this pid
  // namespace.
  GANTRY_TRY(const pid_t pid, PidOf(holder.pidfd()));
  const std::string directory = Format("/proc/{}", pid);
  GANTRY_CHECK_OK(WriteMappings(directory + "/uid_map", uids));
  GANTRY_CHECK_OK(WriteMappings(directory + "/gid_map", gids));
  UniqueFd space(open((directory + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) {
    return FailErrno(errno, "open '{}/ns/user'", directory);
  }
  return space;
}

}  // namespace gantry::mount
