// SPDX-License-Identifier: Apache-2.0
//
// A container under test: its bundle, its instance at the keeper, and the calls
// about it, each named as in the Task service.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>

#include "tests/contract/harness/client.h"
#include "tests/contract/harness/node.h"

namespace gantry::contract {

using Json = nlohmann::json;

struct BoxOptions {
  std::vector<std::string> args = {"sleep", "1000"};
  bool terminal = false;
  /// Paths of fifos, or URIs; empty: none.
  std::string in{};
  std::string out{};
  /// Containers of one group share a socket and a sandbox.
  std::string group{};
  /// Merged into config.json.
  Json spec = Json::object();
};

/// A whole config.json.
Json MakeSpec(const Node& node, const std::string& id, const BoxOptions& options);
/// An OCI process object.
Json MakeProcess(const std::vector<std::string>& args, bool terminal = false);

/// Thread: the test's. Does not clean up by itself: see `Finish`.
class Box {
 public:
  Box(Node& node, std::string id, std::string handler, BoxOptions options = {});

  /// Writes the bundle and announces the instance; false: it could not.
  bool Announce();
  /// Writes the bundle only: a container that comes on the socket of its pod,
  /// without a shim of its own.
  void Join(const std::string& socket);
  /// A Create with the root file system as a bind mount.
  pb::CreateTaskRequest CreateRequest() const;

  Result<pb::CreateTaskResponse> Create() const;
  Result<pb::StartResponse> Start(const std::string& exec = "") const;
  Result<pb::DeleteResponse> Delete(const std::string& exec = "") const;
  Result<pb::StateResponse> State(const std::string& exec = "") const;
  Result<pb::WaitResponse> Wait(const std::string& exec = "") const;
  Status Kill(uint32_t signal, const std::string& exec = "", bool all = false) const;
  /// `out`: path of a fifo; empty: none.
  Status Exec(const std::string& exec, const std::vector<std::string>& args, bool terminal = false,
              const std::string& out = "") const;
  /// The same of any OCI process object.
  Status ExecProcess(const std::string& exec, const Json& process,
                     const std::string& out = "") const;
  Status Pause() const;
  Status Resume() const;
  Status Resize(const std::string& exec = "") const;
  Status CloseIO(const std::string& exec = "") const;
  Status Update(const std::string& resources) const;
  Status Checkpoint() const;
  Result<pb::StatsResponse> Stats() const;
  Result<pb::PidsResponse> Pids() const;
  Result<pb::ConnectResponse> Connect() const;
  Status Shutdown() const;

  /// As containerd does at the end: kills what runs, Delete, the shim's
  /// `delete`, and the bundle is removed. Errors: what a record or a file still
  /// there says.
  Status Finish();

  const std::string& id() const { return id_; }

  const std::string& bundle() const { return bundle_; }

  const TaskClient& client() const { return client_; }

  Node& node() const { return node_; }

 private:
  void WriteBundle() const;

  Node& node_;
  const std::string id_;
  const std::string handler_;
  const BoxOptions options_;
  const std::string bundle_;
  TaskClient client_;
  bool has_shim_ = false;
};

}  // namespace gantry::contract
