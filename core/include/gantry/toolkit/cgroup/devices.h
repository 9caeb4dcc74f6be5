// SPDX-License-Identifier: Apache-2.0
//
// Which devices the processes in a cgroup may read, write and make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/bpf/assembly.h>
#include <gantry/toolkit/cgroup/cgroup.h>

namespace gantry::cgroup {

/// One of `linux.resources.devices`. Of several that are about the same device the last counts.
/// Source: opencontainers/runtime-spec 1.2, config-linux.md#allowed-device-list.
struct DeviceRule {
  bool allow = false;
  /// 'a' (both), 'b' or 'c'.
  char type = 'a';
  /// Nothing: all of them.
  std::optional<uint32_t> major{};
  std::optional<uint32_t> minor{};
  bool read = true;
  bool write = true;
  bool mknod = true;

  bool operator==(const DeviceRule&) const = default;
};

/// As many can a container have.
inline constexpr size_t kMostDeviceRules = 512;

/// What is not named is denied, but for the devices that each container has (`/dev/null`, zero,
/// full, random, urandom, tty, its terminals) and for making devices, which can then not be used.
/// Again: takes the place of the rules before. Programs of others on the cgroup are removed.
/// Errors, and nothing may be used then that could not before: kInvalidArgument: too many, or
/// v1 cannot tell one from an earlier one; kUnimplemented: the node lacks v1's controller, or
/// its kernel v2's programs. Blocks: on files. Thread: any.
Status LimitDevices(const Cgroup& cgroup, const std::vector<DeviceRule>& rules);

/// What `LimitDevices` makes of rules, the same for both hierarchies.
struct DevicePolicy {
  /// What no rule is about may be used.
  bool allow_others = false;
  /// Of 'b' and 'c' only; of several about the same device the last counts.
  std::vector<DeviceRule> rules;

  static DevicePolicy Of(const std::vector<DeviceRule>& rules);
  /// There is nothing to forbid.
  bool AllowsAll() const;
};

namespace v1 {
/// `dir` is a directory of the tree of `devices`.
Status LimitDevices(const std::string& dir, const DevicePolicy& policy);
}  // namespace v1

namespace v2 {
/// A program of type BPF_PROG_TYPE_CGROUP_DEVICE.
bpf::Assembly DeviceProgram(const DevicePolicy& policy);
Status LimitDevices(const std::string& dir, const DevicePolicy& policy);
}  // namespace v2

}  // namespace gantry::cgroup
