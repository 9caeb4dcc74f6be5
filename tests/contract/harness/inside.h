// SPDX-License-Identifier: Apache-2.0
//
// The fixture of rules about what is inside a container: a program of its prints what it
// sees, and the rule compares that with the spec.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/contract/harness/contract_test.h"

namespace gantry::contract {

/// Its containers are confined as their specs say; else it refuses those that ask for it.
inline constexpr std::string_view kConfinement = "confinement";
/// Masked and read-only paths that are not the kernel's.
inline constexpr std::string_view kPathsOfTheImage = "paths of the image";
/// `rlimits` of an exec that are not its container's.
inline constexpr std::string_view kLimitsOfExecs = "limits of execs";
/// A container's processes, and nothing that outlives them, are the host's.
inline constexpr std::string_view kOwnProcesses = "processes of the host";

class InsideTest : public ContractTest {
 protected:
  /// What `sh -c script` says as the init of a container with `spec` merged into its
  /// config.json. Nothing: the backend says that it has no such container; then the test
  /// ends with `GTEST_SKIP() << refusal()`. Where anything else fails, the test does.
  std::optional<std::string> Says(const std::string& script, const Json& spec = Json::object());
  /// What `args` say instead, to their end.
  std::optional<std::string> SaysTo(const std::vector<std::string>& args, const Json& spec);

  /// A container with `spec` that runs until it is killed; null as `Says` is nothing.
  /// `script` is what its init does first.
  Box* Resident(const Json& spec = Json::object(), const std::string& script = "");
  /// What an exec says to `sh -c script`, with `process` merged into its OCI process.
  std::optional<std::string> ExecSays(const Box& box, const std::string& script,
                                      const Json& process = Json::object());

  /// Why there was nothing.
  const std::string& refusal() const { return refusal_; }

  /// The mounts that each container has here, and more.
  static Json MountsWith(std::vector<Json> more);

  /// A name that no other rule has, for a file in the root of all containers.
  std::string Unique(std::string_view what) const { return Id("-" + std::string(what)); }

 private:
  template <class T>
  bool IsRefused(const Result<T>& result);

  std::string refusal_;
  int execs_ = 0;
};

/// The lines `NAME: value` of a file such as /proc/self/status.
std::map<std::string, std::string> Fields(const std::string& text);
/// The words of a text.
std::set<std::string> Words(const std::string& text);

/// Source: Linux 6.12, include/uapi/linux/capability.h.
inline constexpr int kChown = 0;
inline constexpr int kKill = 5;
inline constexpr int kNetBindService = 10;

/// A capability set as a number. Source: proc(5), capabilities(7).
uint64_t CapabilityMask(const std::vector<int>& numbers);
/// The same of what /proc/PID/status shows; all bits where it shows none.
uint64_t MaskOf(const std::string& shown);

inline constexpr const char* kShowStatus = "cat /proc/self/status";

/// Prints the numbers of the descriptors that the shell has; opens none for it.
inline constexpr const char* kDescriptors =
    "i=0; while [ $i -lt 256 ]; do [ -e /proc/$$/fd/$i ] && echo $i; i=$((i+1)); done";

}  // namespace gantry::contract
