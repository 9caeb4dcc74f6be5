// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/membership.h>
#include <gantry/toolkit/container/join.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/mount_info.h>
#include <gantry/toolkit/process/pid_of.h>

#include "core/toolkit/container/joined.h"
#include "core/toolkit/container/make_with.h"
#include "core/toolkit/container/namespaces.h"

namespace gantry::container {
namespace {

constexpr size_t kMaxProcFile = size_t{1} << 20;

/// Of cgroups that the maker is not in.
Result<std::vector<std::string>> CgroupDirsOf(pid_t init) {
  GANTRY_TRY(const std::string own, ReadFile("/proc/self/cgroup", kMaxProcFile));
  GANTRY_TRY(const std::string text, ReadFile(Format("/proc/{}/cgroup", init), kMaxProcFile));
  const std::vector<cgroup::Membership> mine = cgroup::ParseMemberships(own);
  std::vector<std::string> dirs;
  std::vector<mount::MountPoint> mounts;
  for (const cgroup::Membership& membership : cgroup::ParseMemberships(text)) {
    if (std::ranges::contains(mine, membership)) {
      continue;
    }
    if (mounts.empty()) {
      GANTRY_TRY(mounts, mount::ListMounts("/"));
    }
    const auto found = cgroup::FindMounted(membership, mounts);
    if (!found) {
      return Fail(Code::kFailedPrecondition,
                  "join a container: its cgroup '{}' is not seen in any mount here",
                  membership.path);
    }
    dirs.push_back(found->dir());
  }
  return dirs;
}

/// What of config.json counts for a process that joins, and nothing that changes the container;
/// taken out of the request.
oci::Spec SpecFor(JoinRequest& request) {
  oci::Spec spec;
  spec.annotations = std::move(request.spec.annotations);
  spec.linux_spec.seccomp = std::move(request.spec.linux_spec.seccomp);
  spec.linux_spec.personality = std::move(request.spec.linux_spec.personality);
  if (request.program != nullptr) {
    // To be read by the program; nothing is mounted of it.
    spec.root = std::move(request.spec.root);
    spec.mounts = std::move(request.spec.mounts);
  }
  spec.process = std::move(request.process);
  oci::ProcessSpec& process = spec.process;
  oci::ProcessSpec& init = request.spec.process;
  if (!process.capabilities) {
    process.capabilities = std::move(init.capabilities);
  }
  if (process.rlimits.empty()) {
    process.rlimits = std::move(init.rlimits);
  }
  if (process.apparmor_profile.empty()) {
    process.apparmor_profile = std::move(init.apparmor_profile);
  }
  if (process.selinux_label.empty()) {
    process.selinux_label = std::move(init.selinux_label);
  }
  return spec;
}

}  // namespace

Result<Joined> FindJoined(int init, const oci::ProcessSpec& process) {
  Joined joined;
  GANTRY_TRY(joined.initial_cpus,
             ParseCpuList(process.initial_cpu_affinity, "process.execCPUAffinity.initial"));
  GANTRY_TRY(joined.final_cpus,
             ParseCpuList(process.final_cpu_affinity, "process.execCPUAffinity.final"));
  if (joined.final_cpus.empty() && !joined.initial_cpus.empty()) {
    joined.final_cpus = AllCpus();
  }
  auto pid = PidOf(init);
  if (!pid) {
    return std::unexpected(std::move(pid).error().Within("join a container: its init"));
  }
  joined.init = *pid;
  GANTRY_TRY(joined.cgroup_dirs, CgroupDirsOf(joined.init));
  return joined;
}

Status CheckStillThere(int init) {
  pollfd ended{.fd = init, .events = POLLIN, .revents = 0};
  if (::poll(&ended, 1, 0) != 0) {
    return Fail(Code::kNotFound, "join a container: its init has ended");
  }
  return {};
}

Status EnterCgroups(const Joined& joined) {
  GANTRY_CHECK_OK(SetAffinity(joined.initial_cpus, "process.execCPUAffinity.initial"));
  for (const std::string& dir : joined.cgroup_dirs) {
    // The writing process, whatever its number is there.
    if (Status entered = WriteExisting(dir + "/cgroup.procs", "0"); !entered) {
      return std::unexpected(std::move(entered).error().Within("enter the container's cgroup"));
    }
  }
  return SetAffinity(joined.final_cpus, "process.execCPUAffinity.final");
}

Result<MadeProcess> Join(JoinRequest request) {
  GANTRY_TRY(const Joined joined, FindJoined(request.init, request.process));
  const int init = request.init;
  MakeRequest made;
  made.bundle = std::move(request.bundle);
  made.id = std::move(request.id);
  made.streams = request.streams;
  made.passed_on = std::move(request.passed_on);
  made.sibling = request.sibling;
  made.takes_listener = request.takes_listener;
  made.program = request.program;
  made.spec = SpecFor(request);
  return MakeIn(std::move(made), joined, init);
}

}  // namespace gantry::container
