// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/namespaces.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/id_map.h>

#include "core/toolkit/container/descriptors.h"
#include "core/toolkit/container/proc_files.h"

namespace gantry::container {
namespace {

struct NamespaceKind {
  std::string_view type;
  /// In /proc/PID/ns.
  const char* file;
  int flag;
};

constexpr NamespaceKind kNamespaceKinds[] = {
    {"user", "user", CLONE_NEWUSER},       {"mount", "mnt", CLONE_NEWNS},
    {"pid", "pid", CLONE_NEWPID},          {"network", "net", CLONE_NEWNET},
    {"ipc", "ipc", CLONE_NEWIPC},          {"uts", "uts", CLONE_NEWUTS},
    {"cgroup", "cgroup", CLONE_NEWCGROUP}, {"time", "time", CLONE_NEWTIME}};

Result<JoinedNamespace> Open(const NamespaceKind& kind, const oci::LinuxNamespace& space) {
  JoinedNamespace out{.type = space.type, .path = space.path, .flag = kind.flag, .fd = {}};
  out.fd.reset(::open(space.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!out.fd) {
    return FailErrno(errno, "open {} namespace '{}'", space.type, space.path);
  }
  GANTRY_TRY(out.fd, AboveStreams(std::move(out.fd)));
  const int found = ::ioctl(out.fd.get(), NS_GET_NSTYPE);
  if (found != kind.flag) {
    return Fail(Code::kInvalidArgument, "join {} namespace '{}': it is {}", space.type, space.path,
                found < 0 ? "no namespace" : "one of another kind");
  }
  return out;
}

bool AreSame(const struct stat& ours, const struct stat& theirs) {
  return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// The maker is in it already: joining a user namespace again is an error of the kernel's.
Result<bool> IsOwn(const NamespaceKind& kind, const JoinedNamespace& space) {
  const std::string own = Format("/proc/self/ns/{}", kind.file);
  struct stat ours{};
  struct stat theirs{};
  if (::stat(own.c_str(), &ours) != 0) {
    return FailErrno(errno, "look at '{}'", own);
  }
  if (::fstat(space.fd.get(), &theirs) != 0) {
    return FailErrno(errno, "look at {} namespace '{}'", space.type, space.path);
  }
  return AreSame(ours, theirs);
}

Result<UniqueFd> OpenFolder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    return FailErrno(errno, "open '{}'", path);
  }
  return folder;
}

Status Join(const JoinedNamespace& space) {
  if (::setns(space.fd.get(), space.flag) != 0) {
    return FailErrno(errno, "join {} namespace '{}'", space.type, space.path);
  }
  return {};
}

bool Joins(const std::vector<JoinedNamespace>& joined, int flag) {
  return std::ranges::any_of(
      joined, [flag](const JoinedNamespace& space) { return (space.flag & flag) != 0; });
}

}  // namespace

bool Namespaces::has(int flag) const { return (fresh & flag) != 0 || Joins(joined, flag); }

Result<Namespaces> OpenNamespaces(const std::vector<oci::LinuxNamespace>& list) {
  Namespaces out;
  for (const oci::LinuxNamespace& space : list) {
    const auto kind = std::ranges::find(kNamespaceKinds, space.type, &NamespaceKind::type);
    if (kind == std::end(kNamespaceKinds)) {
      return Fail(Code::kInvalidArgument, "make a '{}' namespace: there is no such kind",
                  space.type);
    }
    if (space.path.empty()) {
      out.fresh |= kind->flag;
      continue;
    }
    GANTRY_TRY(JoinedNamespace joined, Open(*kind, space));
    GANTRY_TRY(const bool own, IsOwn(*kind, joined));
    if (!own) {
      out.joined.push_back(std::move(joined));
    }
  }
  return out;
}

Result<Namespaces> NamespacesOf(int pidfd, pid_t pid) {
  JoinedNamespace all{
      .type = "the process's", .path = Format("/proc/{}/ns", pid), .flag = 0, .fd = {}};
  GANTRY_TRY(const UniqueFd own, OpenFolder("/proc/self/ns"));
  GANTRY_TRY(const UniqueFd its, OpenFolder(all.path));
  for (const NamespaceKind& kind : kNamespaceKinds) {
    struct stat ours{};
    struct stat theirs{};
    if (::fstatat(own.get(), kind.file, &ours, 0) != 0) {
      continue;  // Not every kernel has each of them.
    }
    if (::fstatat(its.get(), kind.file, &theirs, 0) != 0) {
      return FailErrno(errno, "look at '{}/{}'", all.path, kind.file);
    }
    all.flag |= AreSame(ours, theirs) ? 0 : kind.flag;
  }
  all.fd.reset(::fcntl(pidfd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!all.fd) {
    return FailErrno(errno, "duplicate descriptor {}", pidfd);
  }
  Namespaces out;
  if (all.flag != 0) {
    out.joined.push_back(std::move(all));
  }
  return out;
}

Status JoinNamespaces(const std::vector<JoinedNamespace>& joined) {
  const auto user = std::ranges::find(joined, CLONE_NEWUSER, &JoinedNamespace::flag);
  std::vector<const JoinedNamespace*> later;
  for (const JoinedNamespace& space : joined) {
    if (space.flag == CLONE_NEWUSER) {
      continue;
    }
    Status status = Join(space);
    if (!status && status.error().sys_errno == EPERM && user != joined.end()) {
      later.push_back(&space);
      continue;
    }
    GANTRY_CHECK_OK(std::move(status));
  }
  if (user == joined.end()) {
    return Joins(joined, CLONE_NEWUSER) ? BecomeRoot() : Status();
  }
  GANTRY_CHECK_OK(Join(*user));
  GANTRY_CHECK_OK(BecomeRoot());
  for (const JoinedNamespace* const space : later) {
    GANTRY_CHECK_OK(Join(*space));
  }
  return {};
}

std::optional<uint32_t> HostIdOf(uint32_t id, const std::vector<IdMapping>& mappings) {
  for (const IdMapping& mapping : mappings) {
    if (id >= mapping.container_id && id - mapping.container_id < mapping.length) {
      return mapping.host_id + (id - mapping.container_id);
    }
  }
  return std::nullopt;
}

Status WriteIdMaps(int proc, pid_t pid, const oci::LinuxSpec& spec) {
  if (spec.uid_mappings.empty() || spec.gid_mappings.empty()) {
    return Fail(Code::kInvalidArgument,
                "make a user namespace: no uidMappings or no gidMappings in 'linux'");
  }
  GANTRY_CHECK_OK(
      WriteProcFile(proc, Format("{}/gid_map", pid), mount::IdMapText(spec.gid_mappings)));
  return WriteProcFile(proc, Format("{}/uid_map", pid), mount::IdMapText(spec.uid_mappings));
}

Status WriteClocks(int proc, pid_t pid, const std::map<std::string, oci::TimeOffset>& offsets) {
  std::string text;
  for (const auto& [clock, offset] : offsets) {
    text += Format("{} {} {}\n", clock, offset.seconds, offset.nanoseconds);
  }
  return text.empty() ? Status() : WriteProcFile(proc, Format("{}/timens_offsets", pid), text);
}

Status BecomeRoot() {
  // Where `setgroups` is denied the process has the groups that it came with; they are not mapped,
  // or were given to the namespace by who made it. Source: user_namespaces(7).
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 && errno != EPERM) {
    return FailErrno(errno, "drop the groups in the user namespace");
  }
  if (::syscall(SYS_setresgid, 0, 0, 0) != 0) {
    return FailErrno(errno, "become group 0 of the user namespace");
  }
  if (::syscall(SYS_setresuid, 0, 0, 0) != 0) {
    return FailErrno(errno, "become user 0 of the user namespace");
  }
  return {};
}

Status RaiseLoopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return FailErrno(errno, "raise 'lo': make a socket");
  }
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof(request.ifr_name) - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
    return FailErrno(errno, "look at 'lo'");
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) {
    return FailErrno(errno, "raise 'lo'");
  }
  return {};
}

}  // namespace gantry::container
