// SPDX-License-Identifier: Apache-2.0
//
// The Task service as containerd calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <gantry/error.h>

#include "core/rpc/blocking_client.h"
#include "proto/containerd/task/task.pb.h"
#include "proto/gantry/wire.pb.h"
#include "tests/contract/harness/setup.h"
#include "tests/harness/program.h"

namespace gantry::contract {

namespace pb = containerd::task;

/// For a machine to boot, too, without KVM on a busy node.
inline const std::chrono::nanoseconds kCallLimit = e2e::Bound(std::chrono::seconds(60));
inline constexpr const char* kService = "containerd.task.v3.Task";
inline constexpr const char* kSandboxService = "containerd.runtime.sandbox.v1.Sandbox";

/// How it went, without the value.
template <class T>
Status Plain(const Result<T>& result) {
  return result ? Status() : Status(std::unexpected(result.error()));
}

/// A request that is on its way. Thread: the test's.
template <class Response>
class Pending {
 public:
  Pending(rpc::BlockingClient client, uint32_t stream, std::string method)
      : client_(std::move(client)), stream_(stream), method_(std::move(method)) {}

  Result<Response> Get(std::chrono::nanoseconds limit = kCallLimit) {
    const Result<std::string> bytes = client_.Receive(stream_, limit);
    if (!bytes) {
      // A Create that is none says so in words.
      if (bytes.error().code == Code::kUnimplemented ||
          bytes.error().message.ends_with(": not implemented")) {
        NoteUnimplemented(method_, bytes.error().message);
      }
      return std::unexpected(bytes.error());
    }
    Response response;
    if (!response.ParseFromString(*bytes)) {
      return Fail(Code::kInternal, "the answer is malformed");
    }
    return response;
  }

  /// Readable: the answer is there.
  int fd() const { return client_.fd(); }

 private:
  rpc::BlockingClient client_;
  uint32_t stream_;
  std::string method_;
};

/// Each call has a connection of its own, so that calls may overlap.
/// Thread: any.
class TaskClient {
 public:
  explicit TaskClient(std::string path, std::string service = kService)
      : path_(std::move(path)), service_(std::move(service)) {}

  /// Errors: those of the answer; kUnavailable where there was none.
  template <class Response, class Request>
  Result<Response> Call(const std::string& method, const Request& request) const {
    GANTRY_TRY(auto pending, (Begin<Response>(method, request)));
    return pending.Get();
  }

  /// Sends, and does not wait.
  template <class Response, class Request>
  Result<Pending<Response>> Begin(const std::string& method, const Request& request) const {
    GANTRY_TRY(rpc::BlockingClient client, rpc::BlockingClient::Connect(path_));
    GANTRY_TRY(const uint32_t stream,
               client.Send(service_, method, request.SerializeAsString(), kCallLimit));
    return Pending<Response>(std::move(client), stream, method);
  }

  /// Bytes for bytes, of any service.
  Result<std::string> Raw(const std::string& service, const std::string& method,
                          const std::string& payload) const {
    GANTRY_TRY(rpc::BlockingClient client, rpc::BlockingClient::Connect(path_));
    return client.Call(service, method, payload, kCallLimit);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string service_;
};

}  // namespace gantry::contract
