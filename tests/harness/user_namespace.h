// SPDX-License-Identifier: Apache-2.0
//
// Pods with a user namespace: which one tests ask for, and what they need.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gantry/toolkit/mount/id_map.h>

#include "tests/harness/host.h"
#include "tests/harness/program.h"
#include "tests/integration/cri/client.h"

namespace gantry::e2e {

inline constexpr uint32_t kFirstId = 200000;
inline constexpr uint32_t kIds = 65536;

inline cri::IDMapping Mapping() {
  cri::IDMapping mapping;
  mapping.set_host_id(kFirstId);
  mapping.set_container_id(0);
  mapping.set_length(kIds);
  return mapping;
}

inline std::vector<IdMapping> IdMap() {
  return {{.host_id = kFirstId, .container_id = 0, .length = kIds}};
}

/// Of a process of the node, "  0  200000  65536" with one blank each.
inline std::string MapOf(pid_t pid) {
  std::string text = ReadText("/proc/" + std::to_string(pid) + "/uid_map");
  std::erase(text, '\n');
  std::string words;
  for (const char c : text) {
    if (c != ' ' || (!words.empty() && words.back() != ' ')) {
      words += c;
    }
  }
  return words;
}

/// Empty: the kernel has them.
inline std::string WhyNoUserNamespace() {
  const auto space = mount::NewUserNamespace(IdMap(), IdMap());
  return space ? "" : "the kernel: " + space.error().message;
}

/// containerd 2 has the pod's own files id-mapped in the containers, too. Empty: this OCI
/// runtime can do it.
inline std::string WhyNoMappedMounts(const std::string& oci) {
  const Output features = RunProgram({"sh", "-c", oci + " features"});
  const size_t at = features.out.find("\"mountExtensions\"");
  const bool can = at != std::string::npos &&
                   features.out.substr(at, 100).find("\"enabled\": true") != std::string::npos;
  return can ? "" : oci + " features: no id-mapped mounts";
}

}  // namespace gantry::e2e
