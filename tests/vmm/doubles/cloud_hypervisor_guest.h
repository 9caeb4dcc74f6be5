// SPDX-License-Identifier: Apache-2.0
//
// What Cloud Hypervisor's API is told, done to a guest behind it.
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
class CloudHypervisorGuest {
 public:
  CloudHypervisorGuest();

  /// A `Behind`.
  std::string Do(const std::string& action, const nlohmann::json& body, std::vector<UniqueFd>& fds);

 private:
  using Json = nlohmann::json;
  enum class Kind { kDisk, kNic, kFileSystem };

  struct Device {
    Kind kind;
    std::string name;
  };

  Status Act(const std::string& action, const Json& body, std::vector<UniqueFd>& fds);
  Status Run(const std::string& action);
  Status Add(const std::string& action, const Json& body, std::vector<UniqueFd>& fds);
  Status Remove(const std::string& id);
  Status Resize(const Json& body);
  Status TakeSnapshot(const Json& body);
  Status Restore(const Json& body);
  void Create(const Json& body);
  void OnEnd(const vmm::VmEnd& end);

  /// Beside the guest, which is started anew in the same process where it resets itself.
  std::mutex mutex_;
  Json document_;
  vmm::VmConfig config_;
  bool booted_ = false;
  std::map<std::string, Device> devices_;
  GuestBehind guest_;
};

}  // namespace gantry::test
