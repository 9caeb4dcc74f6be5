// SPDX-License-Identifier: Apache-2.0
//
// The operator's API, called.
#pragma once

#include <chrono>
#include <string>

#include <gantry/error.h>

#include "core/ctl/address.h"
#include "core/link/control_messages.h"
#include "core/link/status_messages.h"
#include "core/rpc/blocking_client.h"
#include "proto/gantry/operator.pb.h"

namespace gantry::ctl {

/// `address`, here and below: as ParseAddress has it.
/// Thread: any, one at a time. Blocks: every call, up to ten seconds.
class OperatorClient {
 public:
  /// Errors: kUnavailable when nobody listens there, with what to do; kInvalidArgument: no address.
  static Result<OperatorClient> Connect(const std::string& address);

  /// Errors: as is answered, see operator.proto; kDeadlineExceeded.
  Result<v1::ListResponse> List(const std::string& ns);
  /// The same with what `top` shows.
  Result<v1::ListResponse> ListUse(const std::string& ns);
  Result<v1::InspectResponse> Inspect(const std::string& ns, const std::string& id);
  Result<v1::StatusResponse> EngineStatus();
  /// Blocks: for `wait_ms` besides.
  Result<v1::EventsResponse> Events(const v1::EventsRequest& request);

  /// Any call of the API. Errors: also kInternal: the answer is none.
  Status Call(const char* method, const google::protobuf::MessageLite& request,
              google::protobuf::MessageLite& response, std::chrono::nanoseconds timeout);

 private:
  explicit OperatorClient(rpc::BlockingClient client) : client_(std::move(client)) {}

  rpc::BlockingClient client_;
};

/// What gantry has in files: the folder of ttrpc's socket. Over gRPC, whose socket is anywhere,
/// $GANTRY_RUN_DIR.
std::string RunDirOf(const std::string& address);

// What the keeper is asked: by ttrpc's address on its own socket beside the engine's, so that it
// answers also while no engine does; over gRPC by the API.

/// What it says of itself. Blocks: up to ten seconds. Errors: kUnavailable, kDeadlineExceeded.
Result<link::KeeperStatus> QueryKeeper(const std::string& address);

/// Has the keeper put a newly started engine in the place of the
/// one that runs, if any. `program`: an absolute path; empty: that of
/// the present one. Blocks: up to half a minute. Errors:
/// kUnavailable; kFailedPrecondition when the new one was given up and the old one
/// goes on; kDeadlineExceeded.
/// With `no_fallback` the new one stays, however soon it ends.
Result<link::Upgraded> UpgradeEngine(const std::string& address, const std::string& program,
                                     bool no_fallback);

/// Has the keeper end an instance and forget it, without the engine. Errors: kUnavailable,
/// kDeadlineExceeded; over gRPC kNotFound.
Result<link::Deleted> DeleteInstance(const std::string& address, const link::Announce& instance);

/// The keeper becomes `program`, an absolute path. Gives its pid, which stays the same.
/// Errors: kFailedPrecondition with the reason: the old program goes on.
Result<int32_t> UpgradeKeeper(const std::string& address, const std::string& program);

}  // namespace gantry::ctl
