// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/gvisor/sentry/container_manager.h"

namespace gantry::gvisor {

/// The container that a process is started in, as far as that decides what it may do.
struct ProcessPlace {
  std::string container;
  /// Of its init, as its spec has them (`RightsIn`).
  oci::Capabilities rights;
  /// The sentry was started with `net-raw`. Without, no process has CAP_NET_RAW: from an init the
  /// sentry takes it by itself, an exec has what it is given.
  bool net_raw = false;
};

/// What the init of a container with that spec may do: nothing without a word in it, or with one
/// that is no capability.
oci::Capabilities RightsIn(const std::string& spec_json);

/// Whether a sentry was started with `net-raw`, by the flags that are sent to it (`ConfJson`).
bool AllowsRawSockets(const std::string& conf_json);

/// An OCI `process` object as a sentry starts it in a running container: never with a right that
/// the container has not, and without a word on capabilities with those of its init (to a sentry
/// no word means all). Left out is what it cannot be given. Seccomp a sentry takes from the
/// container; limits from the spec of the sandbox's root, in a pod that of the pause container,
/// over any that the call could have.
/// Errors: kInvalidArgument: as `oci::ParseProcess`, or a capability that none is.
/// Source: opencontainers/runtime-spec 1.2, config.md; capabilities(7); runsc 2026-09,
/// pkg/sentry/control/proc.go, runsc/boot/loader.go, executeAsync.
Result<ExecArgs> ReadProcess(const std::string& process_json, const ProcessPlace& place);

}  // namespace gantry::gvisor
