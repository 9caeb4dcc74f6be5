// SPDX-License-Identifier: Apache-2.0
//
// What a node has for the vmm backend: its handlers, of which some boot what no machine should, and
// a network of both families with an end on the node.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/settings.h"

namespace gantry::e2e {

/// Handlers beside `vmm`: whose guest panics, whose first process never says hello, whose kernel or
/// initrd is no file, or one of another machine.
inline constexpr const char* kVmmPanics = "vmm-panics";
inline constexpr const char* kVmmSilent = "vmm-silent";
inline constexpr const char* kVmmNoKernel = "vmm-no-kernel";
inline constexpr const char* kVmmNoInitrd = "vmm-no-initrd";
inline constexpr const char* kVmmOtherKernel = "vmm-other-kernel";
inline constexpr const char* kVmmOtherInitrd = "vmm-other-initrd";

const std::vector<std::string>& FurtherVmmHandlers();

/// By its name: `io.containerd.gantry-HANDLER.v1`.
std::string RuntimeOfHandler(const std::string& handler);

/// Where the sockets and consoles of the machines are.
std::string VmmFolder(const Settings& settings);

/// The part of gantry's configuration.
std::string VmmHandlers(const Settings& settings);

/// The kernel and the initrd of another machine; an empty image for the blockfile snapshotter.
void WriteVmmFiles(const Settings& settings);

/// A CNI plugin: a bridge with an end on the node, which is the gateway of both families, in
/// 198.18.0.0/15 and fd67::/16; its MTU is 1400. Beside it is `NAME.pods`, with a line for each
/// pod: its id and both addresses.
std::string BridgePlugin();

}  // namespace gantry::e2e
