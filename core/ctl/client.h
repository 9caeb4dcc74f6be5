// SPDX-License-Identifier: Apache-2.0
//
// The operator's API, called.
#pragma once

#include <chrono>
#include <string>

#include <gantry/error.h>

#include "core/link/control_messages.h"
#include "core/link/status_messages.h"
#include "core/rpc/blocking_client.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// Thread: any, one at a time. Blocks: every call, up to ten seconds.
class OperatorClient {
 public:
  /// Errors: kUnavailable when nobody listens there, with what to do.
  static Result<OperatorClient> Connect(const std::string& socket);

  /// Errors: as the engine answers, see operator.proto; kDeadlineExceeded.
  Result<v1::ListResponse> List(const std::string& ns);
  Result<v1::InspectResponse> Inspect(const std::string& ns, const std::string& id);
  Result<v1::StatusResponse> EngineStatus();

 private:
  explicit OperatorClient(rpc::BlockingClient client) : client_(std::move(client)) {}

  Status Call(const char* method, const google::protobuf::MessageLite& request,
              google::protobuf::MessageLite& response);

  rpc::BlockingClient client_;
};

/// The run directory that `socket` lies in.
std::string RunDirOf(const std::string& socket);

/// What the keeper beside the engine's `socket` says of itself; it answers also
/// while the engine does not. Blocks: up to ten seconds. Errors: kUnavailable,
/// kDeadlineExceeded.
Result<link::KeeperStatus> QueryKeeper(const std::string& socket);

/// Has the keeper beside `socket` put a newly started engine in the place of the
/// one that runs, if any. `program`: an absolute path; empty: that of
/// the present one. Blocks: up to half a minute. Errors:
/// kUnavailable; kFailedPrecondition when the new one was given up and the old one
/// goes on; kDeadlineExceeded.
/// With `no_fallback` the new one stays, however soon it ends.
Result<link::Upgraded> UpgradeEngine(const std::string& socket, const std::string& program,
                                     bool no_fallback);

/// Has the keeper end an instance and forget it, without the engine. Errors: kUnavailable,
/// kDeadlineExceeded.
Result<link::Deleted> DeleteInstance(const std::string& socket, const link::Announce& instance);

/// The keeper becomes `program`, an absolute path. Gives its pid, which stays the same.
/// Errors: kFailedPrecondition with the reason: the old program goes on.
Result<int32_t> UpgradeKeeper(const std::string& socket, const std::string& program);

}  // namespace gantry::ctl
