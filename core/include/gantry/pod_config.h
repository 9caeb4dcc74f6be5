// SPDX-License-Identifier: Apache-2.0
//
// What Kubernetes asks of a pod, as far as a sandbox can use it. CRI hands it
// over as `runtime.v1.PodSandboxConfig`; what is not here is left out by
// `ParsePodConfig`, and a backend that needs it reads the bytes itself.
// Source: k8s.io/cri-api, pkg/apis/runtime/v1/api.proto.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>

namespace gantry {

/// Where a namespace of the pod's containers comes from. Source: NamespaceMode.
enum class NamespaceMode : uint8_t {
  /// One for the pod.
  kPod = 0,
  /// One for each container.
  kContainer = 1,
  /// The node's.
  kNode = 2,
  /// Another container's.
  kTarget = 3,
};

/// resolv.conf of the pod.
struct DnsConfig {
  std::vector<std::string> servers;
  std::vector<std::string> searches;
  std::vector<std::string> options;

  bool empty() const { return servers.empty() && searches.empty() && options.empty(); }
};

/// Limits of the pod as a whole. Unset: none was given. Source:
/// LinuxContainerResources.
struct PodResources {
  /// Microseconds.
  std::optional<uint64_t> cpu_period;
  std::optional<int64_t> cpu_quota;
  std::optional<uint64_t> cpu_shares;
  /// Bytes.
  std::optional<int64_t> memory_limit;
  std::optional<int64_t> memory_swap_limit;
  std::string cpuset_cpus;
  std::string cpuset_mems;
  /// Files of cgroup v2 with what is to be written into them.
  std::map<std::string, std::string> unified;
};

struct PodConfig {
  std::string name;
  std::string uid;
  std::string ns;
  /// Empty: the node's.
  std::string hostname;
  DnsConfig dns;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  /// The cgroup that holds the pod, from the hierarchy's root on; or the name of
  /// a slice of systemd. Empty: none.
  std::string cgroup_parent;
  /// `net.core.somaxconn` and so on.
  std::map<std::string, std::string> sysctls;
  NamespaceMode network = NamespaceMode::kPod;
  NamespaceMode pid = NamespaceMode::kPod;
  NamespaceMode ipc = NamespaceMode::kPod;
  /// kPod: the pod has a user namespace with these mappings.
  NamespaceMode user = NamespaceMode::kNode;
  std::vector<IdMapping> uids;
  std::vector<IdMapping> gids;
  bool readonly_rootfs = false;
  bool privileged = false;
  /// What the sandbox itself costs, by its RuntimeClass.
  PodResources overhead;
  /// All containers together.
  PodResources resources;
};

/// Reads a `runtime.v1.PodSandboxConfig`; no bytes are a pod of which nothing is
/// asked. Errors: kInvalidArgument: malformed.
Result<PodConfig> ParsePodConfig(std::string_view bytes);

/// Reads a `runtime.v1.LinuxContainerResources`. Errors: kInvalidArgument: malformed.
Result<PodResources> ParsePodResources(std::string_view bytes);

}  // namespace gantry
