// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/pod/set_up.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <map>
#include <string>

namespace gantry::vmm {
namespace {

std::string NodeName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

protocol::SetUp Of(const std::string& hostname, const std::map<std::string, std::string>& sysctls) {
  protocol::SetUp set_up;
  set_up.hostname = hostname.empty() ? NodeName() : hostname;
  for (const auto& [name, value] : sysctls) {
    set_up.sysctls.push_back({.name = name, .value = value});
  }
  return set_up;
}

}  // namespace

protocol::SetUp SetUpOf(const oci::Spec& spec) { return Of(spec.hostname, spec.linux_spec.sysctl); }

protocol::SetUp SetUpOf(const PodConfig& config) { return Of(config.hostname, config.sysctls); }

Limits LimitsOf(const PodResources& resources) {
  return {.cpu_quota = resources.cpu_quota.value_or(0),
          .cpu_period = resources.cpu_period.value_or(0),
          .memory = resources.memory_limit.value_or(0)};
}

Status CheckPod(const PodConfig& config) {
  if (config.network == NamespaceMode::kNode) {
    return Fail(Code::kFailedPrecondition,
                "the node's network (hostNetwork): not in a virtual machine: run the pod with a "
                "handler whose containers are the node's processes");
  }
  if (config.user == NamespaceMode::kPod) {
    return Fail(Code::kFailedPrecondition,
                "a user namespace (hostUsers: false): not in a virtual machine: it has a kernel of "
                "its own; leave hostUsers out");
  }
  return {};
}

}  // namespace gantry::vmm
