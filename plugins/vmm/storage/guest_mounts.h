// SPDX-License-Identifier: Apache-2.0
//
// A config.json with its files as they are in the guest.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include <gantry/error.h>

namespace gantry::vmm {

/// What takes the place of what.
struct GuestMounts {
  /// `root.path`.
  std::string root{};
  /// Of `mounts`, by their place: what is bound there in the guest.
  std::map<size_t, std::string> binds{};
  /// Of `linux.devices` that are disks, by their path: the guest's device file.
  std::map<std::string, std::string> disks{};
};

/// All else stays as it was, but for what is the node's alone: ids that are mapped there already,
/// rules for block devices by numbers of the node's, which are others' in the guest, and
/// annotations that are the agent's. Errors: kInvalidArgument: no config.json. Thread: any.
Result<std::string> WithGuestMounts(const std::string& spec_json, const GuestMounts& mounts);

}  // namespace gantry::vmm
