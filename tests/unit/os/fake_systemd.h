// SPDX-License-Identifier: Apache-2.0
//
// A systemd that has scopes and nothing behind them: the real library on both sides of a socket,
// which it takes for the system bus as long as this lives.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gantry/unique_fd.h>

#include "core/os/fs.h"
#include "core/os/systemd_bus.h"

struct sd_bus;
struct sd_bus_message;

namespace gantry::os {

struct SdBusServer;

class FakeSystemd {
 public:
  /// Null where the machine has no libsystemd.
  static std::unique_ptr<FakeSystemd> Begin();
  FakeSystemd(const FakeSystemd&) = delete;
  FakeSystemd& operator=(const FakeSystemd&) = delete;
  ~FakeSystemd();

  /// A unit that somebody else has made.
  void Put(const std::string& unit, const std::string& control_group);
  bool Has(const std::string& unit) const;
  /// "Slice=a.slice", ...; sorted. Those that it was started with or has been given since.
  std::vector<std::string> PropertiesOf(const std::string& unit) const;
  /// "start x.scope", "stop x.scope", "set x.scope", "forget x.scope", in their order.
  std::vector<std::string> Calls() const;

  /// Each call of that method is answered with that error of D-Bus.
  void Refuse(const std::string& method, const std::string& error);
  /// No call of that method is answered; "": it does not even say hello.
  void BeSilentAt(const std::string& method);
  /// As its jobs end from now on; "": never.
  void EndJobsWith(const std::string& result);
  /// Is called while a start has not been answered. Thread: one of the fake's.
  void WhenStarting(std::function<void()> call);

 private:
  struct Unit {
    std::string control_group;
    std::map<std::string, std::string> properties{};
  };

  explicit FakeSystemd(const SdBusServer& library);

  void Accept();
  void Serve(int connection);
  void Answer(sd_bus* bus, sd_bus_message* message);
  void AnswerManager(sd_bus* bus, sd_bus_message* message, const std::string& method);
  void Start(sd_bus* bus, sd_bus_message* message);
  void Stop(sd_bus* bus, sd_bus_message* message, const std::string& unit);
  void EndJob(sd_bus* bus, sd_bus_message* message, const std::string& unit);
  void ReplyError(sd_bus* bus, sd_bus_message* message, const std::string& name);

  const SdBusServer& library_;
  TempDir dir_;
  SystemdForTest there_;
  UniqueFd listener_;
  mutable std::mutex mutex_;
  std::map<std::string, Unit> units_;
  std::map<std::string, std::string> refused_;
  std::vector<std::string> silent_;
  std::vector<std::string> calls_;
  std::string result_ = "done";
  std::function<void()> starting_;
  unsigned jobs_ = 0;
  /// Open until the end, so that each number is one connection's.
  std::vector<UniqueFd> connections_;
  std::vector<std::thread> servers_;
  bool ends_ = false;
  std::thread accepts_;
};

}  // namespace gantry::os
