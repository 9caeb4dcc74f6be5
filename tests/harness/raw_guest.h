// SPDX-License-Identifier: Apache-2.0
//
// A guest by the calls of the Task service, without containerd's client: for what ctr does not ask
// for, and for very many of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>

#include "tests/harness/raw_shim.h"

namespace gantry::e2e {

/// Of a State.
struct RawState {
  pid_t pid = 0;
  /// containerd's number: 1 created, 2 running, 3 stopped, 4 paused.
  uint64_t status = 0;
  uint64_t exit_status = 0;
};

/// Its root is an empty file system in memory, with tests/guests in /guests. Thread: the test's.
/// Does not clean up by itself: see `Finish`.
class RawGuest {
 public:
  /// `args`: the file's path and arguments. `patch` is merged into its config.json.
  RawGuest(const Node& node, const std::string& id, const std::vector<std::string>& args,
           const nlohmann::json& patch = nlohmann::json::object());

  /// The root is this folder of the node's instead.
  void SetRoot(std::string folder) { root_ = std::move(folder); }

  /// The shim's `start`, where that was not yet, and Create.
  Status Create();
  Status Start();
  /// Create and Start.
  Status Run();
  Status Kill(uint32_t signal);
  Status Update(const nlohmann::json& resources);
  Result<RawState> State();
  /// The exit code.
  Result<uint64_t> Wait();
  Status Delete();
  /// An exec to its end, and its exit code. `args` as above.
  Result<uint64_t> Exec(const std::string& exec, const std::vector<std::string>& args);

  /// Kills what runs, Delete, and the shim's `delete`.
  Status Finish();

  const std::string& bundle() const { return shim_.bundle(); }

 private:
  static nlohmann::json ProcessOf(const std::vector<std::string>& args);
  /// The field of the answer.
  Result<uint64_t> Number(const std::string& method, const std::string& request, uint32_t field);

  RawShim shim_;
  std::string id_;
  std::string root_;
};

}  // namespace gantry::e2e
