// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/warm/warm_key.h"

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/host_limits.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::gvisor {
namespace {

constexpr size_t kMaxFile = 16384;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string FileText(const Program& program, const FileIdentity& identity) {
  return Format("{} {} {} {} {}", program.path, identity.device, identity.inode, identity.size,
                identity.changed_ns);
}

/// Those that this process may run on, and with that, where there is no cpuset, all that it has
/// started for it. Source: proc(5).
std::string OwnProcessors() {
  constexpr std::string_view kLine = "\nCpus_allowed_list:\t";
  const std::string status = ReadFile("/proc/self/status", kMaxFile).value_or("");
  const size_t at = status.find(kLine);
  return at == std::string::npos ? std::string() : FirstLine(status.substr(at + kLine.size()));
}

/// As a list. Source: kernel, admin-guide/cgroup-v2.rst, admin-guide/cgroup-v1/cpusets.rst.
std::string Processors(const std::vector<std::string>& cgroups) {
  for (const std::string& dir : cgroups) {
    for (const char* file : {"/cpuset.cpus.effective", "/cpuset.effective_cpus"}) {
      const std::string list = FirstLine(ReadFile(dir + file, kMaxFile).value_or(""));
      if (!list.empty()) {
        return list;
      }
    }
  }
  return OwnProcessors();
}

/// All else that pods bring is for others. Source: gvisor, runsc/specutils/specutils.go.
bool IsForSentries(const std::string& annotation) {
  return annotation.starts_with("dev.gvisor.") || annotation == "io.kubernetes.cri.container-name";
}

}  // namespace

std::string BuildOf(const Runsc& runsc) {
  return FileText(runsc.runsc, runsc.identity) + "; " +
         FileText(runsc.sentry, runsc.sentry_identity);
}

WarmKey MakeWarmKey(const Runsc& runsc, const Flags& flags, const PauseSpecRequest& root,
                    const std::vector<std::string>& cgroups) {
  WarmKey key;
  key.build = BuildOf(runsc);
  key.flags = flags.Arguments();
  // Those that name no pod go on where it has begun them. It tells nobody else's user anything.
  key.logs = flags.logs;
  key.logs.user.clear();
  PauseSpecRequest fixed = root;
  fixed.root = "/";
  fixed.hostname.clear();
  if (fixed.network) {
    fixed.network->clear();
  }
  std::erase_if(fixed.annotations, [](const auto& one) { return !IsForSentries(one.first); });
  key.root = PauseSpec(fixed);
  const cgroup::HostLimits limits = cgroup::ReadHostLimits(cgroups);
  key.machine = Format("{} {} {} {}", limits.host_memory_bytes, limits.memory_bytes, limits.cpus,
                       Processors(cgroups));
  return key;
}

std::string_view DifferenceOf(const WarmKey& one, const WarmKey& other) {
  if (one.build != other.build) {
    return "the build of runsc";
  }
  if (one.flags != other.flags) {
    return "runsc's flags";
  }
  if (one.logs != other.logs) {
    return "where its logs are";
  }
  if (one.root != other.root) {
    return "the user namespace, network namespace, sysctls or annotations";
  }
  return one.machine == other.machine ? "" : "the limits of memory or processors";
}

}  // namespace gantry::gvisor
