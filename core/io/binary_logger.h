// SPDX-License-Identifier: Apache-2.0
//
// A log program of the operator's (`binary://`, `binary-v2://`): started by the
// keeper with the read ends of two pipes, whose write ends the process gets as
// stdout and stderr. No byte passes through gantry.
//
// The program finds stdout at descriptor 3, stderr at 4 and at 5 the write end
// of a pipe by which it says that it is ready: by a byte or by closing it; with
// `binary-v2` a close without a byte is a failure. Its environment is exactly
// CONTAINER_ID and CONTAINER_NAMESPACE.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "core/io/host.h"
#include "core/io/uri.h"

namespace gantry::io {

struct BinaryLoggerSpec {
  /// kind, path and query count.
  StdioUri uri;
  std::string id;
  std::string ns;
  std::string tag;
  size_t pipe_bytes = size_t{256} << 10;
  std::chrono::milliseconds ready_limit{30'000};
};

/// Thread: any, one call at a time.
class BinaryLogger {
 public:
  struct Started {
    std::unique_ptr<BinaryLogger> logger;
    /// Blocking write ends for the process.
    UniqueFd out;
    UniqueFd err;
  };

  /// Errors: as the spawn's; kDeadlineExceeded, kUnavailable, after which the
  /// program has been killed. Thread: workers. Blocks: up to `ready_limit`.
  static Result<Started> Start(StdioHost& host, const BinaryLoggerSpec& spec);

  /// A program that an earlier engine started; one that has ended since counts.
  static std::unique_ptr<BinaryLogger> Recover(StdioHost& host, const std::string& tag);

  explicit BinaryLogger(std::shared_ptr<HostProcess> process) : process_(std::move(process)) {}

  /// Waits up to `grace` for the program to end by itself, for it has seen the
  /// end of its input; then SIGTERM, and SIGKILL after `stop_limit`.
  /// Again: harmless. Thread: workers.
  void Stop(std::chrono::milliseconds grace, std::chrono::milliseconds stop_limit);

 private:
  /// Null: it has ended.
  std::shared_ptr<HostProcess> process_;
};

}  // namespace gantry::io
