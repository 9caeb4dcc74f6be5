// SPDX-License-Identifier: Apache-2.0
//
// The flags that sentry and gofers of a sandbox are started with: those of the handler's
// options, overridden by annotations of the pod. What gantry itself has to know of them is
// here; all others are handed on as they are.
// Source: gvisor, runsc/config/config.go, runsc/config/flags.go.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "plugins/gvisor/launch/log_files.h"
#include "plugins/gvisor/network/network_args.h"

namespace gantry::gvisor {

enum class Network {
  /// The sentry's own network stack on the links of the pod's network namespace.
  kSandbox,
  /// The host's sockets.
  kHost,
  /// Loopback only.
  kNone,
};

/// Where what containers write goes. `overlay2`.
struct Overlay {
  enum class Medium { kNone, kSelf, kMemory, kDirectory };
  Medium medium = Medium::kSelf;
  /// Bind mounts, too, and not only the root.
  bool mounts = false;
  /// For kDirectory.
  std::string directory;
};

/// Thread: any; plain data.
struct Flags {
  /// Name and value, without dashes.
  std::map<std::string, std::string> all;
  Network network = Network::kSandbox;
  Overlay overlay;
  std::string platform = "systrap";
  LogFlags logs;
  /// A sentry on its own must be of runsc's release. `sidecar-release-enforcement-policy`, but that
  /// releases without a label count, too.
  bool same_release = true;
  /// What annotations name as a bundle of flags, and is none that is known here.
  std::vector<std::string> unknown_bundles;

  /// `--name=value` of those that are handed on as they are.
  std::vector<std::string> Arguments() const;
  /// What they say of the network's devices.
  NetworkOptions NetworkFlags() const;
  /// The same as the sentry wants it with each container: names and numbers of its own.
  std::string ConfJson() const;
};

using Annotations = std::map<std::string, std::string>;

/// What an annotation that sets a flag begins with.
inline constexpr std::string_view kFlagAnnotation = "dev.gvisor.flag.";

/// And one that sets several at once, those of a bundle that runsc has: its value is "true". A
/// flag's own annotation comes before it. Source: runsc/config/config_bundles.go;
/// runsc/specutils/specutils.go, FixConfig. But that what the handler has otherwise may not be set
/// here without `allow-flag-override`.
inline constexpr std::string_view kBundleAnnotation = "dev.gvisor.bundle.";

/// `flags`: of the handler. Errors: kInvalidArgument naming the flag, as an option or an
/// annotation, for a value that none can be, for what may not be overridden and for what
/// this backend cannot do.
Result<Flags> MakeFlags(const std::map<std::string, std::string>& flags,
                        const Annotations& annotations);

}  // namespace gantry::gvisor
