// SPDX-License-Identifier: Apache-2.0
//
// The kernel settings that a pod may have of its own.
#pragma once

#include <string>

#include <gantry/error.h>

namespace gantry {

/// Whose settings they are.
struct OwnNamespaces {
  bool net = false;
  bool ipc = false;
  bool uts = false;
};

/// The file of a setting, from /proc/sys on: no part of it leads anywhere else. Both
/// ways to write it are understood: `net.ipv4.conf.eth0/1.forwarding`, and
/// `net/ipv4/conf/eth0.1/forwarding`. Source: sysctl(8).
/// Errors: kInvalidArgument where it is no name, or would be the node's.
Result<std::string> SysctlPath(const std::string& name, const OwnNamespaces& own);

}  // namespace gantry
