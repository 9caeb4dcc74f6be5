// SPDX-License-Identifier: Apache-2.0
//
// What a container's config.json demands of the OCI runtime: looked at before that is run, since
// it would leave it out without a word, or say what nobody understands.
#include <string>
#include <utility>

#include <gantry/toolkit/files/files.h>

#include "plugins/runc/container.h"

namespace gantry::runc {

Status RuncContainer::CheckMounts() const {
  if (remains_.Spec().idmapped_mount.empty()) {
    return {};
  }
  std::string features;
  OciCall call;
  call.verb = "features";
  call.object = remains_.id.str();
  call.bundle = remains_.bundle;
  call.log_name = "features.log";
  call.capture = true;
  call.output = &features;
  call.limit = command_.Limit();
  const Status asked = command_.Run(std::move(call));
  if (asked && PromisesIdmappedMounts(features)) {
    return {};
  }
  GANTRY_TRY(const std::string binary, command_.Binary());
  return Fail(Code::kFailedPrecondition,
              "create container '{}': the mount at '{}' is to be id-mapped, and '{}' does not do "
              "that; crun and runc from 1.2 on do",
              remains_.id.str(), remains_.Spec().idmapped_mount, binary);
}

/// dockerd names scopes and sends no options: without the flag an OCI runtime would make a
/// directory of that name, outside of every slice. Not on record: what made the container keeps
/// it in its own state.
Status RuncContainer::ChooseCgroupManager() {
  const Options& options = command_.options();
  const std::string path = remains_.Spec().cgroups_text;
  if (options.systemd_cgroup && path.contains('/')) {
    return Fail(Code::kInvalidArgument,
                "create container '{}': its cgroup path '{}' is no scope of systemd's "
                "(SLICE.slice:PREFIX:NAME), which the option 'SystemdCgroup' asks for: set it to "
                "false, or have the client name scopes (kubelet: cgroupDriver: systemd; of a pod: "
                "a slice as cgroup_parent)",
                remains_.id.str(), path);
  }
  if (!options.systemd_cgroup && NamesScope(path) && Exists(options.systemd_directory)) {
    command_.UseSystemd();
  }
  return {};
}

}  // namespace gantry::runc
