// SPDX-License-Identifier: Apache-2.0
//
// Releasing a created container's init without a run of the OCI runtime.
//
// Between `create` and `start` the init waits at a fifo, ROOT/ID/exec.fifo, and
// `start` of the command line does no more than to end that wait and to remove
// the fifo. The two runtimes use it in opposite directions:
//   crun: the init holds it open for reading; `start` writes one byte.
//     Source: crun 1.21, src/libcrun/status.c; the same in 1.8.
//   runc: the init opens it for writing, which blocks, and writes one byte;
//     `start` opens it for reading. Source: runc 1.1.15, libcontainer.
// Which it is shows in whether an open for writing finds a reader. Neither
// keeps "running" in its state: a live init without a fifo is a running one.
#pragma once

#include <functional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

namespace gantry::runc {

/// What lets an engine die in the middle of a release and the next one end it. An init
/// that reads and finds that its writer has gone spins, and ends when it then sees one that
/// has not written yet; an init that writes ends when its reader has gone. So in the
/// first case who comes second, and in the other everybody, has the init stand still
/// until all is ready.
struct ReleaseAids {
  /// An engine before this one may have begun.
  bool again = false;
  /// What that one kept; may be empty.
  UniqueFd reader{};
  /// Keeps a reader where it outlives the engine, until the release is over.
  std::function<Status(const UniqueFd&)> keep_reader = [](const UniqueFd&) { return Status(); };
};

/// Releases `init`. Errors: kNotFound: no such fifo; kFailedPrecondition: the
/// init has ended; kDeadlineExceeded. Blocks: until `deadline`.
Status ReleaseInit(const std::string& fifo, const HostProcess& init, Deadline deadline,
                   const ReleaseAids& aids);

/// Whether the process has the fifo open, so that it still waits.
Result<bool> HoldsFifo(HostPid pid, const std::string& fifo);

}  // namespace gantry::runc
