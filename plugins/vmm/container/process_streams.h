// SPDX-License-Identifier: Apache-2.0
//
// The standard streams of a process of the guest, which the guest dials. Each is named by a token
// before the process is made, and given to the core when it is there: three of them, or the one
// that carries a terminal both ways.
#pragma once

#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/process.h>

#include "plugins/vmm/agent/streams.h"
#include "plugins/vmm/protocol/messages.h"

namespace gantry::vmm {

/// Thread: one. Those that were not attached are forgotten with it.
class ProcessStreams {
 public:
  /// Owner: `streams` is borrowed. Errors: kResourceExhausted.
  static Result<ProcessStreams> Expect(StreamListener& streams, bool terminal);
  ProcessStreams(const ProcessStreams&) = delete;
  ProcessStreams(ProcessStreams&& other) noexcept;
  ProcessStreams& operator=(const ProcessStreams&) = delete;
  ProcessStreams& operator=(ProcessStreams&&) = delete;
  ~ProcessStreams();

  /// For the request that makes the process.
  const protocol::Streams& tokens() const { return tokens_; }

  /// The process was made, so its streams are dialled or will be. Errors: kDeadlineExceeded; as
  /// `ProcessContext::AttachStream`. Blocks: up to `deadline`.
  Status Attach(ProcessContext& context, Deadline deadline);

 private:
  explicit ProcessStreams(StreamListener& streams) : streams_(&streams) {}

  Result<UniqueFd> Take(const std::string& token, Deadline deadline);

  StreamListener* streams_;
  protocol::Streams tokens_;
  /// Of these, what nobody has taken.
  std::vector<std::string> expected_;
};

}  // namespace gantry::vmm
