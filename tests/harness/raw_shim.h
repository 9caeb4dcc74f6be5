// SPDX-License-Identifier: Apache-2.0
//
// The shim without containerd: its program executed and its services called as
// no containerd would, on the run's keeper.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/rpc/blocking_client.h"
#include "tests/harness/node.h"

namespace gantry::e2e {

/// Thread: the test's.
class RawShim {
 public:
  /// Makes the bundle with a working config.json and an empty rootfs folder.
  /// `handler` of gantry's configuration; empty = the default one.
  RawShim(const Node& node, const std::string& id, const std::string& handler = "");
  RawShim(const RawShim&) = delete;
  RawShim& operator=(const RawShim&) = delete;
  ~RawShim();

  /// `start`; the socket is known when its status is 0.
  Output Start();
  /// `delete`.
  Output Delete();
  /// The shim's program with any id and stdin.
  Output Execute(const std::string& id, const std::string& action, const std::string& input = "");

  /// A call of containerd.task.v2.Task on a connection of its own.
  Status Call(const std::string& method, const std::string& payload, Duration timeout = kDeadline);
  Status CallService(const std::string& service, const std::string& method,
                     const std::string& payload, Duration timeout = kDeadline);
  /// As `Call`; the answer's bytes.
  Result<std::string> Ask(const std::string& method, const std::string& payload,
                          Duration timeout = kDeadline);
  /// A request with nothing but the id.
  std::string IdRequest() const;
  std::string CreateRequest(const std::string& bundle) const;

  /// A connection to the instance's socket; none when there is no socket.
  UniqueFd Dial() const;

  const std::string& bundle() const { return bundle_; }

  const std::string& socket() const { return socket_; }

 private:
  const Node& node_;
  std::string id_;
  std::string bundle_;
  std::string program_;
  std::string socket_;
};

/// A config.json for `true` with `rootfs` as its root.
std::string WorkingSpec(const std::string& cgroup);

}  // namespace gantry::e2e
