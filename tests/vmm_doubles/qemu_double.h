// SPDX-License-Identifier: Apache-2.0
//
// A QEMU without a VM: what its commands take, and what they do to its tables of devices, nodes,
// backends and descriptors. A real one checks the same requests in tests/vmm.
// Source: QEMU 10.0, qapi/*.json.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/vmm_doubles/qmp_server.h"

namespace gantry::test {

/// What its guest does when a device is to be removed.
enum class GuestMood { kLetsGo, kRefuses, kSilent };

class QemuDouble {
 public:
  /// `cpus`: it has so many places, of which the first is taken.
  explicit QemuDouble(UniqueFd listener, int cpus = 1);

  QmpServer& server() { return server_; }

  void SetGuest(GuestMood mood);
  /// `device_add` fails from now on.
  void RefuseDevices();
  /// Migrations end so.
  void SetMigration(const std::string& status);

  std::set<std::string> Devices() const;
  /// Nodes, netdevs and chardevs.
  std::set<std::string> Backends() const;
  /// By the names that were given to their descriptors.
  std::set<std::string> FdSets() const;

 private:
  using Json = nlohmann::json;
  Json Handle(const Json& request, std::vector<UniqueFd>& fds);
  Json Change(const std::string& command, const Json& arguments, std::vector<UniqueFd>& fds);
  Json Query(const std::string& command);
  Json AddBackend(const std::string& id);
  Json RemoveBackend(const std::string& id);
  Json AddDevice(const Json& device);
  Json RemoveDevice(const std::string& id);
  /// What the server is to say behind the answer.
  void Later(const std::string& event, const Json& data);

  mutable std::mutex mutex_;
  const int cpus_;
  GuestMood guest_ = GuestMood::kLetsGo;
  bool refuses_devices_ = false;
  std::string migration_ = "completed";
  std::string state_ = "prelaunch";
  std::map<std::string, Json> devices_;
  std::set<std::string> backends_;
  /// Devices that a silent guest was asked to let go of.
  std::set<std::string> asked_;
  std::map<std::string, UniqueFd> fds_;
  std::map<int64_t, std::string> fd_sets_;
  uint64_t balloon_ = 0;
  uint64_t more_memory_ = 0;
  QmpServer server_;
};

}  // namespace gantry::test
