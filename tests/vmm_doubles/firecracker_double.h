// SPDX-License-Identifier: Apache-2.0
//
// A Firecracker without a VM of its own: which requests it has, what they must look like, which are
// taken before the VM is started and which after it, and what it answers. Source: firecracker 1.17,
// src/firecracker/swagger/firecracker.yaml, docs/device-hotplug.md (what the former lacks).
#pragma once

#include <mutex>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/vmm_doubles/behind.h"
#include "tests/vmm_doubles/rest_server.h"

namespace gantry::test {

class FirecrackerDouble {
 public:
  /// `pci`: it was started with --enable-pci.
  FirecrackerDouble(const std::string& path, bool pci, Behind behind = {});

  RestServer& server() { return server_; }

  /// Targets of what it has been told: "/drives/d1".
  std::set<std::string> Devices() const;
  std::string State() const;

 private:
  /// As `Take`; where what stands behind it cannot, nothing has changed.
  RestReply Handle(RestCall& call);
  RestReply Take(const RestCall& call, const nlohmann::json& body);
  RestReply Get(const std::string& target);
  RestReply Put(const std::string& target, const nlohmann::json& body);
  RestReply Patch(const std::string& target, const nlohmann::json& body);
  RestReply Delete(const std::string& target);
  RestReply Act(const std::string& action);

  const bool pci_;
  const Behind behind_;
  mutable std::mutex mutex_;
  std::string state_ = "Not started";
  std::set<std::string> told_;
  nlohmann::json machine_;
  uint64_t balloon_ = 0;
  uint64_t plugged_ = 0;
  RestServer server_;
};

}  // namespace gantry::test
