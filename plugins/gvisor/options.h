// SPDX-License-Identifier: Apache-2.0
//
// What a handler or a request may set for this backend. The keys are those of the file that
// containerd-shim-runsc-v1 reads, so that a node moves over by changing its runtime_type.
// Source: gvisor, pkg/shim/runsc/options.go.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gantry/error.h>

namespace gantry::gvisor {

/// Thread: any; plain data.
struct Options {
  /// `binary_name`: absolute, or a name looked up in PATH.
  std::string binary_name = "runsc";
  /// `root`: where what belongs to no bundle lies; the containerd namespace is put below it.
  std::string root = "/run/containerd/runsc";
  /// `log_path`: where `runsc_config` has no `debug-log`, that, for sentries and gofers. (With the
  /// other shim it is that shim's own log.)
  std::string log_path;
  /// `log_level`: "debug" or "trace" makes what is logged there more.
  std::string log_level;
  /// `runsc_config`: flags of runsc by name, without dashes.
  std::map<std::string, std::string> runsc_config;
  /// `image_prefixes`: directories below which the images lie that annotations may name as a
  /// container's root. None: annotations may name none.
  std::vector<std::string> image_prefixes;
  /// `warm`: sandboxes that are booted and wait for a pod.
  uint32_t warm = 0;
  /// `timeout_ms`: how long a step of starting a sandbox may take, where the core's own limit
  /// for the call is not shorter.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  /// Directories in which programs are looked up; the engine's own PATH.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
};

/// Of sandboxes for each handler.
inline constexpr uint32_t kMaxWarm = 64;

/// The defaults, with the engine's PATH.
Options DefaultOptions();

/// `base` with what `json` sets; empty text sets nothing. Unknown keys are put into
/// `unknown`; without `unknown` they are an error.
/// Errors: kInvalidArgument naming the key.
Result<Options> ParseOptions(const std::string& json, Options base,
                             std::vector<std::string>* unknown);

/// All that they set of runsc's flags.
std::map<std::string, std::string> RunscFlags(const Options& options);

/// runsc's binary. Errors: kFailedPrecondition, saying what to install.
Result<std::string> FindRunsc(const Options& options);

}  // namespace gantry::gvisor
