// SPDX-License-Identifier: Apache-2.0
#include "core/toolkit/container/names.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <string_view>

#include "core/toolkit/container/proc_files.h"

namespace gantry::container {
namespace {

struct SysctlOwner {
  std::string_view name;
  int flag = 0;
  const char* space = "";
};

// Those of /proc/sys that each namespace has of its own. The user namespace's (user.max_*) are
// limits that it must not lift itself. Source: namespaces(7), ipc_namespaces(7); of the kernel
// ipc/ipc_sysctl.c, ipc/mq_sysctl.c, kernel/utsname_sysctl.c.
constexpr SysctlOwner kKeys[] = {
    {"kernel/domainname", CLONE_NEWUTS, "uts"},      {"kernel/hostname", CLONE_NEWUTS, "uts"},
    {"kernel/auto_msgmni", CLONE_NEWIPC, "ipc"},     {"kernel/msg_next_id", CLONE_NEWIPC, "ipc"},
    {"kernel/msgmax", CLONE_NEWIPC, "ipc"},          {"kernel/msgmnb", CLONE_NEWIPC, "ipc"},
    {"kernel/msgmni", CLONE_NEWIPC, "ipc"},          {"kernel/sem", CLONE_NEWIPC, "ipc"},
    {"kernel/sem_next_id", CLONE_NEWIPC, "ipc"},     {"kernel/shm_next_id", CLONE_NEWIPC, "ipc"},
    {"kernel/shm_rmid_forced", CLONE_NEWIPC, "ipc"}, {"kernel/shmall", CLONE_NEWIPC, "ipc"},
    {"kernel/shmmax", CLONE_NEWIPC, "ipc"},          {"kernel/shmmni", CLONE_NEWIPC, "ipc"},
};

constexpr SysctlOwner kFolders[] = {
    {"fs/mqueue/", CLONE_NEWIPC, "ipc"},
    {"net/", CLONE_NEWNET, "network"},
};

// `a.b.c` and `a/b/c` name the same; where the first separator is a slash, dots are part of names.
// Source: sysctl(8).
std::string FileOf(std::string_view key) {
  std::string file(key);
  const size_t first = file.find_first_of("./");
  if (first != std::string::npos && file[first] == '.') {
    for (char& c : file) {
      c = c == '.' ? '/' : c == '/' ? '.' : c;
    }
  }
  return file;
}

bool IsPlain(std::string_view file) {
  for (size_t start = 0; start <= file.size();) {
    const size_t end = std::min(file.find('/', start), file.size());
    const std::string_view part = file.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") {
      return false;
    }
    start = end + 1;
  }
  return true;
}

const SysctlOwner* OwnerOf(std::string_view file) {
  const auto key = std::ranges::find(kKeys, file, &SysctlOwner::name);
  if (key != std::end(kKeys)) {
    return &*key;
  }
  const auto folder = std::ranges::find_if(
      kFolders, [&](const SysctlOwner& owner) { return file.starts_with(owner.name); });
  return folder == std::end(kFolders) ? nullptr : &*folder;
}

Status CheckSysctl(std::string_view key, const oci::Spec& spec, const Namespaces& namespaces) {
  const std::string file = FileOf(key);
  const SysctlOwner* const owner = IsPlain(file) ? OwnerOf(file) : nullptr;
  if (owner == nullptr) {
    return Fail(Code::kInvalidArgument,
                "set sysctl '{}': no namespace has it of its own, it is the node's", key);
  }
  if (!namespaces.has(owner->flag)) {
    return Fail(Code::kInvalidArgument,
                "set sysctl '{}': the container has no {} namespace of its own, it is the node's",
                key, owner->space);
  }
  if ((file == "kernel/hostname" && !spec.hostname.empty()) ||
      (file == "kernel/domainname" && !spec.domainname.empty())) {
    return Fail(Code::kInvalidArgument, "set sysctl '{}': config.json has the name already", key);
  }
  return {};
}

}  // namespace

Status CheckNames(const oci::Spec& spec, const Namespaces& namespaces) {
  const bool named = !spec.hostname.empty() || !spec.domainname.empty();
  if (named && !namespaces.has(CLONE_NEWUTS)) {
    return Fail(Code::kInvalidArgument,
                "set the host name '{}': the container has no uts namespace of its own",
                spec.hostname.empty() ? spec.domainname : spec.hostname);
  }
  for (const auto& [key, value] : spec.linux_spec.sysctl) {
    GANTRY_CHECK_OK(CheckSysctl(key, spec, namespaces));
  }
  return {};
}

Status SetNames(const oci::Spec& spec) {
  if (!spec.hostname.empty() && ::sethostname(spec.hostname.data(), spec.hostname.size()) != 0) {
    return FailErrno(errno, "set the host name '{}'", spec.hostname);
  }
  if (!spec.domainname.empty() &&
      ::setdomainname(spec.domainname.data(), spec.domainname.size()) != 0) {
    return FailErrno(errno, "set the domain name '{}'", spec.domainname);
  }
  return {};
}

Status WriteSysctls(int proc, const oci::LinuxSpec& spec) {
  for (const auto& [key, value] : spec.sysctl) {
    if (Status status = WriteProcFile(proc, "sys/" + FileOf(key), value); !status) {
      return std::unexpected(std::move(status).error().Within("set sysctl '" + key + "'"));
    }
  }
  return {};
}

}  // namespace gantry::container
