// SPDX-License-Identifier: Apache-2.0
//
// Where the files of a sandbox are, on the host and in its guest.
#pragma once

#include <cstdint>
#include <string>

#include <gantry/format.h>

namespace gantry::vmm {

/// The shared directory, as the guest knows the device.
inline constexpr const char* kShareTag = "gantry";
/// In the guest: the shared directory, and all else that the agent mounts for containers.
inline constexpr const char* kGuestShared = "/run/gantry/shared";
inline constexpr const char* kGuestVolumes = "/run/gantry/volumes";
/// What is relative in a config.json is relative to it, so nothing is.
inline constexpr const char* kGuestBundle = "/run/gantry";

/// In the sandbox's own directory.
inline std::string SharedIn(const std::string& directory) { return directory + "/shared"; }

inline std::string SocketIn(const std::string& directory) { return directory + "/fs.sock"; }

inline std::string RecordsIn(const std::string& directory) { return directory + "/storage"; }

/// Below `SharedIn` and `kGuestShared`.
inline std::string NameOf(uint32_t number) { return std::to_string(number); }

inline std::string VolumeInGuest(uint32_t number) { return Format("{}/{}", kGuestVolumes, number); }

}  // namespace gantry::vmm
