// SPDX-License-Identifier: Apache-2.0
//
// A task as containerd has it, without a containerd's cost: its bundle, the shim that is
// executed for it, and the calls of the Task service.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/rpc/blocking_client.h"
#include "tests/harness/raw_shim.h"

namespace gantry::fault {

struct TaskStreams {
  /// Paths of fifos; empty: none.
  std::string in{};
  std::string out{};
  std::string err{};
  bool terminal = false;
};

/// How a process ended.
struct Ended {
  uint32_t status = 0;
};

/// Thread: one at a time.
class ChurnTask {
 public:
  /// The container runs `command` in the root file system at `rootfs`.
  ChurnTask(const e2e::Node& node, std::string id, std::string rootfs,
            const std::vector<std::string>& command, TaskStreams streams);

  /// The shim's `start`, and containerd's connection.
  Status Announce();
  Status Create();
  Status Start(const std::string& exec = "");
  /// As task.proto numbers them: 1 is created.
  Result<int> State();
  Status Exec(const std::string& exec, const std::vector<std::string>& command,
              const TaskStreams& streams);
  Status Kill(int signal);
  Status Pause();
  Status Resume();
  Status CloseInput();
  /// Asks for the end, on a connection of its own.
  Status BeginWait(const std::string& exec = "");
  /// What was answered to the last `BeginWait`.
  Result<Ended> Wait();
  Result<Ended> Delete(const std::string& exec = "");
  /// The shim's `delete`.
  Result<Ended> ShimDelete();

  const std::string& bundle() const { return shim_.bundle(); }

 private:
  Result<std::string> Ask(const char* method, const std::string& request);
  Status Call(const char* method, const std::string& request);
  std::string Named(const std::string& exec = "") const;

  std::string id_;
  std::string rootfs_;
  TaskStreams streams_;
  e2e::RawShim shim_;
  std::optional<rpc::BlockingClient> connection_;
  std::optional<rpc::BlockingClient> waiting_;
  uint32_t wait_stream_ = 0;
};

}  // namespace gantry::fault
