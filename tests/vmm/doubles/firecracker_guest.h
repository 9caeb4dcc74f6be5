// SPDX-License-Identifier: Apache-2.0
//
// What Firecracker's API is told, done to a guest behind it.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/vmm/doubles/guest_behind.h"

namespace gantry::test {

/// Thread: any; its requests one at a time.
class FirecrackerGuest {
 public:
  /// `root`: of its jail, below which all paths are; empty: it has none.
  explicit FirecrackerGuest(std::string root);

  /// A `Behind`.
  std::string Do(const std::string& request, const nlohmann::json& body,
                 std::vector<UniqueFd>& fds);

 private:
  using Json = nlohmann::json;

  Status Act(const std::string& request, const Json& body);
  Status Put(const std::string& target, const Json& body);
  Status Patch(const std::string& target, const Json& body);
  Status Delete(const std::string& target);
  Status Start();
  Status Describe(const std::string& target, const Json& body);
  Status AddDrive(const Json& body);
  Status AddNic(const Json& body);
  Status TakeSnapshot(const Json& body);
  Status Load(const Json& body);

  std::string PathOf(const Json& path) const { return root_ + path.get<std::string>(); }

  static void OnEnd(const vmm::VmEnd& end);

  const std::string root_;
  std::mutex mutex_;
  /// By their targets: what a snapshot is of.
  Json told_ = Json::object();
  vmm::VmConfig config_;
  bool started_ = false;
  /// What the guest behind it calls them.
  std::map<std::string, std::string> drives_;
  std::map<std::string, std::string> nics_;
  GuestBehind guest_;
};

}  // namespace gantry::test
