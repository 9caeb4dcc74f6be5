// SPDX-License-Identifier: Apache-2.0
//
// A Cloud Hypervisor without a VM of its own: which requests it has, what they must look like, in
// which state which is taken, and what it answers. Source: cloud-hypervisor after v53,
// vmm/src/api/openapi/cloud-hypervisor.yaml, vmm/src/api/http.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/vmm_doubles/behind.h"
#include "tests/vmm_doubles/rest_server.h"

namespace gantry::test {

class CloudHypervisorDouble {
 public:
  explicit CloudHypervisorDouble(UniqueFd listener, Behind behind = {},
                                 std::function<void()> shut_down = {});

  RestServer& server() { return server_; }

  /// Ids of its devices.
  std::set<std::string> Devices() const;
  /// "Created", "Running", ...; empty: there is no VM.
  std::string State() const;
  /// How many descriptors have come with requests.
  size_t fds() const;

 private:
  RestReply Handle(RestCall& call);
  /// As `Act`; where what stands behind it cannot, nothing has changed.
  RestReply Take(const std::string& action, const nlohmann::json& body, std::vector<UniqueFd>& fds);
  RestReply Act(const std::string& action, const nlohmann::json& body, size_t fds);
  RestReply ChangeState(const std::string& action);
  RestReply Create(const nlohmann::json& body);
  RestReply Add(const nlohmann::json& body);
  RestReply Resize(const nlohmann::json& body);

  const Behind behind_;
  const std::function<void()> shut_down_;
  mutable std::mutex mutex_;
  std::string state_;
  nlohmann::json config_;
  std::set<std::string> devices_;
  size_t fds_ = 0;
  RestServer server_;
};

}  // namespace gantry::test
