// SPDX-License-Identifier: Apache-2.0
//
// The system calls of the process that runs a guest, of which the guest itself makes none: what is
// not here is for who has broken out of the engine.
//
//   let through   what an engine needs for files, clocks, memory and waiting; sockets of TCP and
//                 UDP where the guest may have them; messages of a socket that is there, as the
//                 gate of the process is; signals to itself
//   EPERM         sockets, where it may not; EINVAL, ENOTTY: the rest of fcntl, ioctl
//   ends it       by SIGSYS (exit code 159): what makes programs, processes, executable memory,
//                 mounts, namespaces, rights; what looks into others; what reaches far into the
//                 kernel; calls of another architecture than the program's
//   ENOSYS        all others, so that a newer C library or engine finds its way around them
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <optional>
#include <vector>

namespace gantry::wasm {

struct FilterRequest {
  /// The guest may make sockets.
  bool sockets = false;
  /// It may accept connections of one that is there, and use them.
  bool connections = false;
  /// The number of the process, where it is.
  pid_t self = 0;
  /// seccomp(2) is let through with these flags, to load one filter more.
  std::optional<unsigned> seccomp_flags;
};

std::vector<sock_filter> FilterFor(const FilterRequest& request);

}  // namespace gantry::wasm
