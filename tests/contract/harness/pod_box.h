// SPDX-License-Identifier: Apache-2.0
//
// A pod without a pause container under test, and the calls about it, each named
// as in the Sandbox service.
#pragma once

#include <string>

#include "proto/containerd/sandbox.pb.h"
#include "tests/contract/harness/box.h"

namespace gantry::contract {

namespace sandbox_pb = containerd::runtime::sandbox::v1;

/// A request that has nothing but the pod's id.
template <class Request>
Request OfPod(const std::string& id) {
  Request request;
  request.set_sandbox_id(id);
  return request;
}

/// On the node's network: nobody makes one here. Thread: the test's.
class PodBox {
 public:
  PodBox(Node& node, std::string id, std::string handler);

  /// Makes the bundle, as containerd does, and announces the instance.
  bool Announce();
  sandbox_pb::CreateSandboxRequest CreateRequest() const;

  Status Create() const;
  Result<sandbox_pb::StartSandboxResponse> Start() const;
  Status Stop() const;
  Result<sandbox_pb::WaitSandboxResponse> Wait() const;
  Result<sandbox_pb::SandboxStatusResponse> GetStatus() const;
  Status Ping() const;
  Status Shutdown() const;
  Result<sandbox_pb::SandboxMetricsResponse> Metrics() const;
  Result<sandbox_pb::PlatformResponse> Platform() const;

  /// As containerd does at the end: StopSandbox, ShutdownSandbox, `delete`, and the
  /// bundle is removed. Errors: what is left.
  Status Finish();

  const std::string& id() const { return id_; }

  const std::string& bundle() const { return bundle_; }

  const TaskClient& client() const { return client_; }

  /// The cgroup that the pod is given.
  std::string cgroup() const { return node_.cgroup() + "/" + id_; }

 private:
  Node& node_;
  const std::string id_;
  const std::string handler_;
  const std::string bundle_;
  TaskClient client_;
};

}  // namespace gantry::contract
