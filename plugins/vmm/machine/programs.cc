// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/programs.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/rights.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/vmm/machine/vmm_root.h"

namespace gantry::vmm {
namespace {

/// The guest's address; nobody else's on a device of its own.
constexpr uint32_t kGuestCid = 3;
constexpr rlim_t kOpenFiles = 4096;

/// A file that it can only add to: its file system is bounded.
Result<UniqueFd> OpenLog(const std::string& path) {
  constexpr mode_t kMode = 0600;
  UniqueFd log(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!log) {
    return FailErrno(errno, "open '{}'", path);
  }
  return log;
}

Status AddLog(const std::string& path, SpawnRequest& request) {
  GANTRY_TRY(UniqueFd out, OpenLog(path));
  GANTRY_TRY(UniqueFd error, out.Duplicate());
  request.fds.emplace_back(std::move(out), STDOUT_FILENO);
  request.fds.emplace_back(std::move(error), STDERR_FILENO);
  return {};
}

/// Guest memory is in no core dump.
void Confine(const ProgramTerms& terms, uint64_t capabilities, SpawnRequest& request) {
  request.uid = terms.user.uid.value_or(0);
  request.gid = terms.user.gid;
  request.capabilities = capabilities;
  request.no_new_privs = true;
  request.cgroups = terms.cgroups;
  request.new_namespaces |= CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS;
  request.rlimits.emplace_back(RLIMIT_CORE, rlimit{.rlim_cur = 0, .rlim_max = 0});
  request.rlimits.emplace_back(RLIMIT_NOFILE, RaisedLimit(RLIMIT_NOFILE, kOpenFiles));
}

Status AddNetwork(const std::string& netns, SpawnRequest& request) {
  if (netns.empty()) {
    request.new_namespaces |= CLONE_NEWNET;
    return {};
  }
  UniqueFd space(open(netns.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) {
    return FailErrno(errno, "open the network namespace '{}'", netns);
  }
  request.namespaces.emplace_back(std::move(space), CLONE_NEWNET);
  return {};
}

}  // namespace

Result<MachineUser> UserOf(std::optional<uint32_t> uid, Accelerator accelerator,
                           const std::string& kvm) {
  constexpr mode_t kOthers = S_IROTH | S_IWOTH;
  constexpr mode_t kGroup = S_IRGRP | S_IWGRP;
  MachineUser user{.uid = uid, .gid = uid.value_or(0)};
  struct stat info{};
  if (!uid || accelerator != Accelerator::kKvm || stat(kvm.c_str(), &info) != 0 ||
      (info.st_mode & kOthers) == kOthers) {
    return user;
  }
  if ((info.st_mode & kGroup) != kGroup || info.st_gid == 0) {
    return Fail(Code::kFailedPrecondition,
                "choose a user for a VM: '{}' is for root alone: let a group have it (chgrp kvm, "
                "chmod 0660), or set the option 'users: 0', by which VMMs run as root",
                kvm);
  }
  user.gid = info.st_gid;
  return user;
}

Result<std::shared_ptr<HostProcess>> StartVmm(SandboxContext& context, Hypervisor& hypervisor,
                                              const MachineDirectory& directory,
                                              const ProgramTerms& terms) {
  GANTRY_TRY(SpawnRequest request, hypervisor.Describe());
  GANTRY_CHECK_OK(AddLog(directory.vmm_log(), request));
  Confine(terms, 0, request);
  GANTRY_CHECK_OK(AddNetwork(hypervisor.traits().tap_by_name ? terms.netns : "", request));
  if (terms.own_root) {
    std::vector<RootPath> shown = terms.shown;
    shown.push_back({.path = directory.vm(), .writable = true});
    request.empty_root = true;
    request.root_paths = RootOf(request.argv.front(), hypervisor, shown);
  }
  request.tag = kVmmTag;
  return context.Spawn(std::move(request));
}

Result<std::shared_ptr<HostProcess>> StartVsock(SandboxContext& context, const MachineMeans& means,
                                                const MachineDirectory& directory,
                                                const ProgramTerms& terms) {
  GANTRY_TRY(const UniqueFd program, means.open_program("gantry-vsock"));
  GANTRY_TRY(UniqueFd front_end, MachineDirectory::Listen(directory.front_end(), terms.user));
  GANTRY_TRY(UniqueFd hosts, MachineDirectory::Listen(directory.hosts(), terms.user));
  UniqueFd sockets(
      open(directory.sockets().c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!sockets) {
    return FailErrno(errno, "open '{}'", directory.sockets());
  }
  SpawnBuilder child;
  child.AddFd("front-end", std::move(front_end));
  child.AddFd("hosts", std::move(hosts));
  child.AddFd("directory", std::move(sockets));
  child.Add({"--name=v", Format("--guest-cid={}", kGuestCid)});
  GANTRY_TRY(SpawnRequest request, child.Finish("gantry-vsock", program));
  GANTRY_CHECK_OK(AddLog(directory.vsock_log(), request));
  // It changes its root, and has none then.
  Confine(terms, uint64_t{1} << CAP_SYS_CHROOT, request);
  request.new_namespaces |= CLONE_NEWNET;
  request.tag = kVsockTag;
  return context.Spawn(std::move(request));
}

}  // namespace gantry::vmm
