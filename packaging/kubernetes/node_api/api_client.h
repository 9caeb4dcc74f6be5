// SPDX-License-Identifier: Apache-2.0
//
// The API of the cluster, for a pod with a service account: a request, and its answer. The server
// has to have the cluster's certificate. Thread: any. Blocks: 30 s at most.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::node_api {

struct ApiServer {
  std::string host;
  std::string port;
  std::string token = {};
  /// Path of the certificates that the server's has to be of.
  std::string ca_file = {};

  /// Of the pod's environment and files. Errors: kFailedPrecondition: this is no pod, or one
  /// without a service account.
  static Result<ApiServer> OfThisPod();
};

struct ApiRequest {
  std::string method = "GET";
  /// With its query.
  std::string target = {};
  std::string content_type = {};
  std::string body = {};
};

/// The body of an answer of 2xx. Errors: kPermissionDenied, kNotFound and kInternal for others,
/// with what the server says; kUnavailable: it was not reached, or is not the cluster's;
/// kDeadlineExceeded.
Result<std::string> Call(const ApiServer& server, const ApiRequest& request);

}  // namespace gantry::node_api
