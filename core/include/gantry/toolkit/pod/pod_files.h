// SPDX-License-Identifier: Apache-2.0
//
// The files that the containers of a pod without a pause container share: hosts,
// hostname, resolv.conf, and the memory behind /dev/shm. containerd makes none of
// them for such a pod. The files are in a tmpfs of 1 MiB in the pod's bundle, `files`:
// containers may write them, and what they write must not fill the node's /run. For
// backends whose containers get files of the host. Thread: any.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/pod_config.h>
#include <gantry/sandbox.h>

namespace gantry {

/// Makes them. `bundle`: absolute, and the caller's. They are those of the pod's root,
/// where `config.user` gives it a user namespace. A hosts or resolv.conf of the node
/// above 480 KiB is not copied: the pod's is empty. Needs the right to mount.
/// Again: fine, the files are made anew, the memory stays. Errors: what could not be
/// written or mounted; the rest is there, and `RemovePodFiles` removes it. Blocks: for
/// the file system.
Status MakePodFiles(const std::string& bundle, const PodConfig& config);

/// Where `MakePodFiles` mounts in `bundle`, or may: known before it does. The core has these on
/// record, and in what it tells the keeper, from a pod's creation on, so that they are unmounted
/// whoever is killed meanwhile. What a backend mounts in the bundle elsewhere is known to the core
/// only when `Sandbox::Start` has returned. Blocks: never.
std::vector<std::string> PodFileMounts(const std::string& bundle);

/// Removes them. Again: fine. Errors: what could not be unmounted or removed.
/// Blocks: for the file system.
Status RemovePodFiles(const std::string& bundle);

/// resolv.conf(5) of a pod that has one of its own. Blocks: never.
std::string ResolvConf(const DnsConfig& dns);

/// config.json of a container in the pod, with the pod's files mounted (those in the
/// bundle itself, where an older engine has made them) where the spec has nothing else, or what
/// containerd 1.7 puts there for want of them: empty directories below `sandboxes/ID` of its own.
/// Nothing else of it is changed. Again: the same. Errors: kInvalidArgument: no JSON object.
/// Blocks: for the file system.
Result<std::string> WithPodFiles(const std::string& spec_json, const SandboxRequest& pod,
                                 const PodConfig& config);

}  // namespace gantry
