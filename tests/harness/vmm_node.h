// SPDX-License-Identifier: Apache-2.0
//
// What a node has for the vmm backend: its handlers, of which some boot what no machine should, and
// a network of both families with an end on the node.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/settings.h"

namespace gantry::e2e {

/// Handlers beside `vmm`: whose guest panics, whose first process never says hello, whose kernel is
/// no file.
inline constexpr const char* kVmmPanics = "vmm-panics";
inline constexpr const char* kVmmSilent = "vmm-silent";
inline constexpr const char* kVmmNoKernel = "vmm-no-kernel";

const std::vector<std::string>& FurtherVmmHandlers();

/// By its name: `io.containerd.gantry-HANDLER.v1`.
std::string RuntimeOfHandler(const std::string& handler);

/// Where the sockets and consoles of the machines are.
std::string VmmFolder(const Settings& settings);

/// The part of gantry's configuration.
std::string VmmHandlers(const Settings& settings);

/// A CNI plugin: a pair of devices, in 198.18.0.0/16 and fd67::/16; the node's end is the gateway
/// of both families, and its MTU is 1400.
std::string VethPlugin();

}  // namespace gantry::e2e
