// SPDX-License-Identifier: Apache-2.0
//
// What the streams of one process need of the engine: the keeper's descriptor
// store under names of their own, and spawns for log programs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/host.h"
#include "core/sandbox/services.h"

namespace gantry::task {

class StdioHost final : public io::StdioHost {
 public:
  /// `prefix` is unique on the node: no other process's begins with it.
  StdioHost(const sandbox::Services& services, std::string prefix)
      : services_(services), prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }

  Status Put(std::vector<io::StoredFd> fds) override;
  Status Hold(std::vector<io::HeldFifo> fifos) override;
  void Drop(std::vector<std::string> names) override;
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;
  std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) override;
  void Log(LogLevel level, std::string_view message) override;

 private:
  const sandbox::Services services_;
  const std::string prefix_;
};

/// Those of `names`, which are in order, that begin with `prefix`, the prefix cut off.
std::vector<std::string> NamesBelow(const std::vector<std::string>& names, std::string_view prefix);

/// What is stored as `prefix` and each of `names`. Thread: loop.
os::Task<std::vector<io::StoredFd>> TakeStored(engine::KeeperLink& link, std::string prefix,
                                               std::vector<std::string> names);

}  // namespace gantry::task
