// SPDX-License-Identifier: Apache-2.0
//
// Calls to the agent of one guest, and what it tells.
//
// The guest is hostile: it may answer what was not asked, late, half, with garbage, never, or too
// much. Each call ends by its deadline with an error that names the agent and the call; what could
// not come from an agent (an answer to no call, a frame that is too long) ends the connection, and
// so do a thousand events that are none. Who is sent something that it does not read holds up the
// calls to itself, each up to its deadline.
//
// It has no thread: who has it watches `fd` and calls `OnReadable` on a worker that is no call's
// (`SandboxContext::WatchReadable`).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/proto/proto_message.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/agent/greet.h"
#include "plugins/vmm/protocol/frames.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {

/// Thread: any, but for `OnReadable`: one at a time.
class AgentClient {
 public:
  /// Calls at once; more are refused with kResourceExhausted.
  static constexpr size_t kMaxCalls = 256;

  /// `name`: of the sandbox, for errors.
  AgentClient(std::string name, Greeted greeted, AgentEvents events);
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;
  ~AgentClient() = default;

  /// Errors: those of the agent; kDeadlineExceeded; kUnavailable: the connection is gone, and
  /// whether the call took effect is not known. Blocks: up to `deadline`.
  template <class Request>
  Result<typename Request::Answer> Call(const Request& request, Deadline deadline) {
    GANTRY_TRY(const std::string body, Ask(Request::kKind, EncodeProto(request), deadline));
    auto answer = DecodeProto<typename Request::Answer>(body);
    if (!answer) {
      return std::unexpected(Within(Request::kKind, std::move(answer).error()));
    }
    return std::move(*answer);
  }

  /// The same in bytes.
  Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline);

  /// Asks and does not wait: `answered` is called once within `OnReadable`, or by whoever ends the
  /// connection, and not where this fails. Blocks: while the agent does not read, for some seconds.
  Status Post(protocol::Kind kind, std::string body,
              std::function<void(Result<std::string> answer)> answered);

  /// Reads what there is, some of it at a time, and wakes whom it is for. False: the connection is
  /// gone; not to be called again. Blocks: never, but for the callbacks.
  bool OnReadable();

  /// For the watch; open as long as this object.
  int fd() const { return socket_.get(); }

  const protocol::Hello& hello() const { return hello_; }

  /// Ends all calls, and the connection. Again: nothing.
  void Close();

 private:
  struct Waiting {
    protocol::Kind kind = protocol::Kind::kNone;
    std::optional<Result<std::string>> answer;
    /// Of what was posted: who hears of it.
    std::function<void(Result<std::string>)> answered;
  };

  /// The number of the call, which waits from now on.
  Result<uint64_t> Begin(Waiting waiting);
  Status Send(uint64_t call, protocol::Kind kind, std::string body, Deadline deadline);
  Status SendAll(std::string_view bytes, Deadline deadline);
  Status TakeFrames();
  Status Take(const std::string& frame);
  Status TakeAnswer(const protocol::Envelope& answer);
  void Break(const Error& why);
  Error Within(protocol::Kind kind, Error error) const;

  const std::string name_;
  const UniqueFd socket_;
  const protocol::Hello hello_;
  const AgentEvents events_;
  const int64_t begin_ns_;
  /// Of `OnReadable`.
  protocol::FrameReader frames_;
  LineLimit lines_;
  uint32_t bad_events_ = 0;

  /// Held by who sends a frame, whole.
  std::timed_mutex sending_;
  /// Guards what follows.
  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<uint64_t, Waiting> calls_;
  uint64_t last_call_ = 0;
  std::optional<Error> broken_;
};

}  // namespace gantry::vmm
