// SPDX-License-Identifier: Apache-2.0
//
// A container's OCI spec as sentry and gofer are to get it, and what gantry itself takes out
// of it. Source: runsc 20240729 and 2026-09, runsc/specutils, runsc/boot/gofer_conf.go;
// opencontainers/runtime-spec 1.2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/id_mapping.h>

#include "plugins/gvisor/container/container_kind.h"
#include "plugins/gvisor/launch/flags.h"
#include "plugins/gvisor/sentry/container_manager.h"
#include "plugins/gvisor/spec/pid_namespaces.h"
#include "plugins/gvisor/spec/volumes.h"

namespace gantry::gvisor {

/// A root or a bind mount: what the sentry gets from outside.
struct FileMount {
  MountConf conf;
  /// On the host. Of an EROFS root the image.
  std::string source;
  /// Its file is the pod's, and stays when the container goes.
  bool is_pods = false;
};

/// Of a root's sysctls one that sentries know nothing of, and gantry takes care of.
inline constexpr const char* kNoIpv6 = "net.ipv6.conf.all.disable_ipv6";

/// Thread: any; plain data.
struct Spec {
  /// The whole document as sentry and gofer get it.
  std::string json;
  /// The root file system first, then the bind mounts in their order.
  std::vector<FileMount> mounts;
  Annotations annotations;
  /// Of the pod.
  std::vector<Volume> volumes;
  /// A network namespace of its own, at `netns_path` or, where that is empty, a new one.
  bool has_netns = false;
  std::string netns_path;
  /// Of a root: its network has no IPv6, not even a loopback. The sysctl kNoIpv6 is not 0.
  bool no_ipv6 = false;
  /// A user namespace: an existing one, or the mappings of a new one. Neither: none is asked.
  std::string userns_path;
  std::vector<IdMapping> uids;
  std::vector<IdMapping> gids;
  /// Of a further container of a sentry: taken out of `json`, `WithPidNamespace` puts it back.
  PidNamespace pids = PidNamespace::kPods;
  std::optional<int> oom_score_adj;
  /// The destination of a mount whose ids are to be mapped otherwise than the container's;
  /// empty: there is none.
  std::string mapped_mount;

  /// A gofer serves the root, too.
  bool HasRootOfGofer() const { return mounts.front().conf.lower == MountConf::Lower::kGofer; }

  /// A gofer is needed to serve its files.
  bool NeedsGofer() const;
  /// How many files of writable layers lie in the mounts themselves or in a directory.
  size_t Filestores() const;
};

struct SpecRequest {
  /// config.json as it is.
  std::string json;
  /// Absolute.
  std::string rootfs;
  std::string bundle;
  /// Others share the /dev/shm that a kRoot gets from the host; a kOwnRoot is in an image.
  ContainerKind kind = ContainerKind::kAlone;
  /// Those of the pod, for a further container and after a restart. None: a root's annotations
  /// tell them.
  std::optional<std::vector<Volume>> volumes{};
};

/// Errors: kInvalidArgument for a document that none can be, naming the field; as `FindVolumes`.
Result<Spec> MakeSpec(const SpecRequest& request, const Overlay& overlay);

/// The document with the mounts as the gofer has resolved them: `mounts_json` is an array.
/// Errors: kInternal.
Result<std::string> WithMounts(const std::string& spec_json, const std::string& mounts_json);

/// The document with the pid namespace of that name; empty: as it is. Errors: kInternal.
Result<std::string> WithPidNamespace(const std::string& spec_json, const std::string& name);

}  // namespace gantry::gvisor
