// SPDX-License-Identifier: Apache-2.0
//
// Logs that an operator has asked for: where runsc's command line puts those of sentries and
// gofers, by the same patterns. They are appended to, and nobody here removes them.
// Source: runsc 2026-09, runsc/specutils/specutils.go (OpenDebugLogFile, LogFileOpts),
// runsc/sandbox/sandbox.go, runsc/container/container.go; pkg/shim/v1/utils/utils.go.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

/// Patterns of absolute paths; an empty one: no such log.
/// Thread: any; plain data.
struct LogFlags {
  /// `debug-log`; one that ends with / is a folder.
  std::string debug{};
  /// `debug-command`: the commands that have one, separated by commas; behind an `!` those that
  /// have none. Empty: all.
  std::string commands{};
  /// `panic-log`.
  std::string panic{};
  /// `coverage-report`. Builds that count no coverage leave it empty.
  std::string coverage{};
  /// What the sentry tells its user, in the pod's folder of logs. No pattern.
  std::string user{};
  /// `debug-to-user-log`.
  bool debug_to_user = false;

  /// Errors: kInvalidArgument naming the flag whose path is not absolute.
  Status Check() const;
  /// `boot` or `gofer` has a debug log.
  bool Debugs(std::string_view command) const;
  /// Which files they are only the pod's name tells.
  bool NamePods() const;

  bool operator==(const LogFlags&) const = default;
};

/// Whose log it is.
struct LogOwner {
  std::string sandbox;
  std::string container;
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

/// The path that a pattern means. For tests, beside `OpenLogFile`.
std::string LogFilePath(std::string_view pattern, const LogOwner& owner, std::string_view command);

/// Opens it for appending, and makes it and the folders above where they are not there; none where
/// the pattern is empty. `flag`: what an error names beside the path.
Result<UniqueFd> OpenLogFile(std::string_view flag, std::string_view pattern, const LogOwner& owner,
                             std::string_view command);

/// The user log of a pod whose logs are in `folder`; empty: it has none.
std::string UserLogIn(const std::string& folder);
/// The folder, of a pod with a pause container. Source: containerd, pkg/cri/annotations.
inline constexpr const char* kLogFolderAnnotation = "io.kubernetes.cri.sandbox-log-directory";
/// The same of a `runtime.v1.PodSandboxConfig`; empty: it says none.
std::string LogFolderOf(std::string_view pod_config);

}  // namespace gantry::gvisor
