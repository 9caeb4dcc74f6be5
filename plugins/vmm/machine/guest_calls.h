// SPDX-License-Identifier: Apache-2.0
//
// A guest as the objects of its containers see it: calls to its agent, the streams that it dials,
// the host's process that stands for it. `Machine` is one; tests put an agent of their own behind
// it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/agent/streams.h"
#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm {

/// Thread: any.
class GuestCalls {
 public:
  GuestCalls(const GuestCalls&) = delete;
  GuestCalls& operator=(const GuestCalls&) = delete;
  virtual ~GuestCalls() = default;

  /// Errors: those of the agent; kDeadlineExceeded; kUnavailable: the machine has ended, or its
  /// connection broke meanwhile, and whether the call took effect is not known. Blocks: up to
  /// `deadline`, also while the agent dials anew.
  template <class Request>
  Result<typename Request::Answer> Call(const Request& request, Deadline deadline) {
    GANTRY_TRY(const std::string body, Ask(Request::kKind, EncodeProto(request), deadline));
    return DecodeProto<typename Request::Answer>(body);
  }

  /// The same in bytes: of a request and of its answer.
  virtual Result<std::string> Ask(protocol::Kind kind, std::string body, Deadline deadline) = 0;

  /// Asks and does not wait: `answered` is called once, on a worker, and not where this fails. It
  /// must not ask the guest. Blocks: while the agent does not read, for some seconds.
  template <class Request>
  Status Post(const Request& request,
              std::function<void(Result<typename Request::Answer> answer)> answered) {
    return PostBytes(Request::kKind, EncodeProto(request),
                     [answered = std::move(answered)](const Result<std::string>& body) {
                       answered(body ? DecodeProto<typename Request::Answer>(*body)
                                     : std::unexpected(body.error()));
                     });
  }

  /// The same in bytes. Errors: kUnavailable: there is no connection.
  virtual Status PostBytes(protocol::Kind kind, std::string body,
                           std::function<void(Result<std::string> answer)> answered) = 0;

  virtual StreamListener& streams() = 0;

  /// The VMM: its pid stands for what runs in the guest.
  virtual std::shared_ptr<HostProcess> process() const = 0;

 protected:
  GuestCalls() = default;
};

}  // namespace gantry::vmm
