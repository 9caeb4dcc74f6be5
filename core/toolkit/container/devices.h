// SPDX-License-Identifier: Apache-2.0
//
// What is in /dev: the devices of the spec and those that each container has, and the links.
// Source: OCI runtime-spec 1.2, config-linux.md, "Default Devices"; runtime-linux.md, "Dev symbolic
// links".
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

struct DeviceFile {
  oci::Device device;
  /// The node's file, as a detached mount; none where a new file is made.
  UniqueFd mount;
};

/// Those of the spec, and the default ones that are not among them. `bind`: the node's files of the
/// same paths, which have to be the same devices.
/// Errors: kInvalidArgument: a path that cannot be, or not a type of a device; kNotFound and
/// kFailedPrecondition: the node has none, or another one.
Result<std::vector<DeviceFile>> FindDevices(const std::vector<oci::Device>& devices, bool bind);

/// Makes them in `root`. The umask is 0. Errors: kFailedPrecondition: something else is there, or
/// a link is on the way.
Status MakeDevices(int root, const std::vector<DeviceFile>& devices);

/// What is there already stays.
Status MakeDeviceLinks(int root);

/// `terminal` on /dev/console.
Status MakeConsole(int root, int terminal);

}  // namespace gantry::container
