// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <gantry/error.h>

#include "plugins/gvisor/sentry/container_manager.h"

namespace gantry::gvisor {

/// An OCI `process` object as a sentry starts it in a running container. Left out is what a
/// sentry takes from the container: limits, seccomp, labels.
/// Errors: kInvalidArgument: no arguments, or a capability that none is.
/// Source: opencontainers/runtime-spec 1.2, config.md; capabilities(7).
Result<ExecArgs> ReadProcess(const std::string& process_json, const std::string& container);

}  // namespace gantry::gvisor
