// SPDX-License-Identifier: Apache-2.0
//
// A pod's volumes as its annotations tell of them, dev.gvisor.spec.mount.NAME.FIELD. The sentry
// reads them from its root's spec: for a mount of any of its containers whose source is that of
// such a "hint", it can have the volume itself, one for all of them, in place of going to a
// gofer for each access. Who writes the annotations knows names and not paths, so those are
// filled in here, from the kubelet's directories.
//
// What is decided for a pod's root holds for all its containers, and is saved with the pod.
// Source: runsc 2026-09, runsc/boot/mount_hints.go, runsc/boot/vfs.go,
// runsc/container/container.go, pkg/shim/v1/utils/volumes.go.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <gantry/error.h>

#include "plugins/gvisor/launch/flags.h"

namespace gantry::gvisor {

struct Volume {
  enum class Kind {
    /// The host's files, by a gofer. The sentry is told who else may change them.
    kHost = 0,
    /// The sentry's, in a file in `source`: there what it takes is counted and limited.
    kFile = 1,
    /// The sentry's, in its memory.
    kMemory = 2,
  };

  std::string name;
  Kind kind = Kind::kHost;
  /// As the sentry gets them: `type`, `share`, `source`, perhaps `options` and `directfs`.
  std::map<std::string, std::string> fields;

  /// On the host, absolute.
  const std::string& source() const { return fields.at("source"); }
};

/// For nlohmann::json. Errors: throws, as its own.
void to_json(nlohmann::json& json, const Volume& volume);
void from_json(const nlohmann::json& json, Volume& volume);

inline constexpr const char* kSharedMemory = "/dev/shm";
inline constexpr const char* kKubeletPods = "/var/lib/kubelet/pods";
/// The annotation in which containerd tells whose pod it is.
inline constexpr const char* kPodUid = "io.kubernetes.cri.sandbox-uid";

/// Those that the annotations of a pod's root tell of; `pods` is the kubelet's directory.
/// Errors: kInvalidArgument naming the annotation: malformed or incomplete; kFailedPrecondition:
/// the kubelet has no such volume. Blocks: on files.
Result<std::vector<Volume>> FindVolumes(const Annotations& annotations,
                                        const std::string& pods = kKubeletPods);

/// The memory behind /dev/shm, which a pod's containers get from the host: `source`.
Volume SharedMemory(const std::string& source);

/// Null: it is none of them.
const Volume* VolumeAt(const std::vector<Volume>& volumes, const std::string& source);

/// Whether an annotation is about volumes.
bool IsOfVolumes(const std::string& annotation);

/// The annotations with those of `volumes` in place of what they had of the kind.
Annotations WithVolumes(Annotations annotations, const std::vector<Volume>& volumes);

/// Makes a spec's bind mount one of the sentry's own memory.
void UseMemory(nlohmann::json& mount);
/// Takes out of a spec's mounts what else a client has put where the pod's memory is.
void RemoveDoubles(const std::vector<Volume>& volumes, nlohmann::json& mounts);

}  // namespace gantry::gvisor
