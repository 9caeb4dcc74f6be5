// SPDX-License-Identifier: Apache-2.0
//
// The files that the containers of a pod share, in the pod's bundle: hosts,
// hostname, resolv.conf, and the memory behind /dev/shm. (With
// `sandboxer = "shim"` containerd makes none of them.)
#pragma once

#include <string>

#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

namespace gantry::runc {

/// Makes them. Again: fine. Errors: what could not be written or mounted.
/// Blocks: for the file system.
Status MakePodFiles(const std::string& bundle, const PodConfig& config);

/// Removes them. Again: fine.
Status RemovePodFiles(const std::string& bundle);

/// resolv.conf(5) of a pod that has one of its own.
std::string ResolvConf(const DnsConfig& dns);

/// config.json of a container in the pod, with the pod's files mounted where the
/// spec has nothing else, or what containerd 1.7 puts there for want of them: empty
/// directories below `sandboxes/ID` of its own.
/// Errors: kInvalidArgument: no JSON object.
Result<std::string> WithPodFiles(const std::string& spec_json, const SandboxRequest& pod,
                                 const PodConfig& config);

}  // namespace gantry::runc
