// SPDX-License-Identifier: Apache-2.0
//
// Running crun and runc from a sealed copy of their file in memory.
//
// Both must never run from a file that a container could overwrite through
// /proc/PID/exe (CVE-2019-5736). So each run copies the file, or mounts it
// read-only, and executes itself again, unless its file is a sealed memfd
// already. Handing them one saves that second execution: 1.3 ms of CPU time of
// crun's 4.7 for a create, 3 of runc's 16. The copy is kept once per engine
// and costs memory of the file's size: 0.5 MiB for crun, 11 MiB for runc.
// Source: runc 1.1.15, libcontainer/nsenter/cloned_binary.c; crun 1.21,
// src/libcrun/cloned_binary.c; measured with those by getrusage(2).
#pragma once

#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::runc {

/// A copy of one version of a file. Thread: any; does not change.
class SealedBinary {
 public:
  explicit SealedBinary(UniqueFd fd) : fd_(std::move(fd)) {}

  /// The copy, for `SpawnRequest::program`. By a path it could not be named for the keeper, which
  /// executes it: /proc/PID of an engine that has ended meanwhile may be another process's.
  Result<UniqueFd> Program() const { return fd_.Duplicate(); }

 private:
  UniqueFd fd_;
};

/// The copy of `binary` as it is now; made at the first call and after a change
/// of the file. Null where there is none to be had, which is no error: for
/// programs of other names (some look at the one they are called by), for
/// scripts, without memory, where memfds may not be executed.
/// Thread: any. Blocks: for a read of the file at the first call.
std::shared_ptr<const SealedBinary> Seal(const std::string& binary);

/// The kernel refused to execute the copy: `Seal` gives none any more.
void ForgetSealed(const std::string& binary);

}  // namespace gantry::runc
