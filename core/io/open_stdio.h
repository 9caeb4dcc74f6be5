// SPDX-License-Identifier: Apache-2.0
//
// Opening what containerd named: the blocking half of `ProcessIo::Open`. Gives
// the process's ends and the ends that gantry holds. The process's ends of fifos
// are held in the store before any is opened here; nothing is watched yet.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

#include "core/async/account.h"
#include "core/io/binary_logger.h"
#include "core/io/fifo.h"
#include "core/io/host.h"
#include "core/io/uri.h"

namespace gantry::io {

struct StdioOptions {
  /// What fifos and pipes are widened to; the kernel may give less.
  size_t pipe_bytes = size_t{256} << 10;
  /// How long Open waits for containerd to open its ends, and for a logger to
  /// be ready; for all streams together.
  std::chrono::milliseconds open_limit{30'000};
  /// How long a logger may take to end after SIGTERM.
  std::chrono::milliseconds logger_stop{12'000};
  /// runc options `io_uid` and `io_gid`: who owns the fifos and pipes.
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  /// What a logger reads in CONTAINER_ID (an exec's id for an exec) and
  /// CONTAINER_NAMESPACE.
  std::string id;
  std::string ns;
  /// Names the logger's process among the engine's spawns.
  std::string logger_tag;
  /// What an attempt that was interrupted left in the store: taken the place of,
  /// so that the other sides of the fifos notice nothing, or dropped.
  std::vector<std::string> left;
  /// The process has heirs that may outlive it, or must not have the fifos themselves: its
  /// output goes through pipes of its own.
  bool own_pipes = false;
  /// How long the heirs of a process that has ended may say nothing before its client sees
  /// the end of such an output.
  std::chrono::milliseconds heirs_limit{10'000};
  /// Of a start that an engine before this one had begun: its backend may yet find that it never
  /// took effect, and end what it had made of the process. That is not the end of the process's
  /// output: until `Started` or `Ended` no end of a copy is passed on.
  bool undecided = false;
  /// Ends the wait for containerd's ends: containerd has gone.
  GivenUp given_up;
  /// On whose behalf bytes are copied.
  async::AccountPtr account;
};

inline constexpr std::array kStreams = {Stream::kStdin, Stream::kStdout, Stream::kStderr};

inline constexpr size_t IndexOf(Stream stream) { return static_cast<size_t>(stream); }

/// Names in the store of the process's ends, by `IndexOf`.
inline constexpr std::array kProcessNames = {"stdin-r", "stdout-w", "stderr-w"};

struct OpenedStdio {
  /// By `IndexOf`. None: there is no such stream.
  std::array<UniqueFd, 3> process;
  /// Fifos and streams only: write end of stdin, read ends of stdout and stderr.
  std::array<UniqueFd, 3> hold;
  /// Null: none.
  std::unique_ptr<BinaryLogger> logger;
  /// Names under which ends of the process are in the store already.
  std::vector<std::string> held;
};

/// The path of one of the streams; empty: none.
const std::string& PathOf(const StdioUri& uri, Stream stream);

/// Errors and blocking: as `ProcessIo::Open`.
Result<OpenedStdio> OpenStdio(Relay& relay, StdioHost& host, const StdioUri& uri,
                              const StdioOptions& options);

/// The log file of `file://` for the relay, its directories made. No process gets it.
/// Errors: the file system's. Thread: workers.
Result<UniqueFd> OpenLogFile(const std::string& path);

}  // namespace gantry::io
