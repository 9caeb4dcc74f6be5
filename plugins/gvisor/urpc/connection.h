// SPDX-License-Identifier: Apache-2.0
//
// One connection to the control server of a sentry ("urpc": gVisor's own protocol).
//
// A request is {"method": "Type.Method", "arg": ...}, an answer {"success": ..., "err": ...,
// "result": ...}, each one JSON object without a frame; descriptors go with the first byte.
// The server reads the next request only when it has answered the one before, and throws
// away what came with it: so there is one request at a time, and a call that waits for a
// workload (Wait, WaitPID) needs a connection for itself. The answer waits in the socket: it
// may be read by another process that holds the descriptor.
// Source: runsc 20240729 and 2026-09, pkg/urpc/urpc.go, pkg/unet/unet.go.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/gvisor/urpc/failure.h"

namespace gantry::urpc {

/// Of a request: more go unseen, or are cut off. With an answer come none that anybody wants, so
/// the kernel is given no room for them and closes them. Source: pkg/urpc/urpc.go, maxFiles.
inline constexpr size_t kMaxFds = 128;
/// Of an answer, where the request says nothing else. The longest of most calls are an error
/// with a stack, and the times of all of a pod's containers.
inline constexpr size_t kMaxAnswerBytes = size_t{256} << 10;
/// Of one that `Peek` reads: a number, or an error.
inline constexpr size_t kMaxPeekedBytes = 4096;

struct Request {
  /// "containerManager.Signal"
  std::string_view method;
  /// One JSON value, as text.
  std::string_view arg = "null";
  /// Stay the caller's.
  std::span<const int> fds = {};
  /// A longer answer is none.
  size_t max_answer = kMaxAnswerBytes;
};

/// A sentry is not believed: an answer has been found to be JSON of few levels before anybody
/// gets it (<gantry/json.h>), and who parses the result says how many values it may have.
struct Answer {
  /// The JSON text of `result`, as the sentry has written it.
  std::string result;
};

/// Thread: one at a time.
class Connection {
 public:
  /// Of a path of any length. Errors: kGone where nobody listens; kLocal; kDeadline.
  /// Blocks: up to `deadline`, where too many wait to be accepted.
  static Outcome<Connection> Open(const std::string& path, Deadline deadline);

  /// Owner: takes `fd`, of a connection on which nothing is under way, or a request that has
  /// been sent, perhaps by another process.
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}

  /// Errors: kGone, kLocal, kDeadline. After one the connection is of no use.
  Outcome<void> Send(const Request& request, Deadline deadline);
  /// The answer to what was sent. `method` is for errors. Errors: all. After one other than
  /// kRefused and kWorkload the connection is of no use.
  Outcome<Answer> Receive(std::string_view method, Deadline deadline,
                          size_t max_answer = kMaxAnswerBytes);

  /// The same, and the answer stays: whoever holds the descriptor can read it once more. For
  /// short answers without descriptors; of several that there are, the first. Errors: as `Receive`.
  Outcome<Answer> Peek(std::string_view method, Deadline deadline);

  /// An answer is there or begins to be, or the peer has gone. Thread: any.
  bool IsReadable() const;

  const UniqueFd& fd() const { return fd_; }

 private:
  UniqueFd fd_;
};

}  // namespace gantry::urpc
