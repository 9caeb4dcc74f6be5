// SPDX-License-Identifier: Apache-2.0
//
// The loop: one front end at a time, its device, and the host's listener.
#pragma once

#include <cstdint>
#include <optional>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/vsock/device.h"
#include "plugins/vmm/vsock/front_end.h"
#include "plugins/vmm/vsock/poller.h"

namespace gantry::vmm::vsock {

/// Of a clock that never goes back.
uint64_t SteadyMs();

struct ServerSettings {
  /// Listening UNIX sockets.
  UniqueFd front_ends;
  UniqueFd hosts;
  DeviceSettings device;
  /// When a front end has left the next one is waited for.
  bool reconnects = false;
  uint64_t (*now_ms)() = &SteadyMs;
};

/// Thread: one, which makes all calls.
class Server {
 public:
  explicit Server(ServerSettings settings);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() = default;

  /// Once, before all others. Errors: the errno's.
  Status Open();

  /// Waits up to `limit_ms`, negative for ever, for something to do and does it. False: the front
  /// end has left, and that was all.
  bool Turn(int limit_ms);

  const Device& device() const { return device_; }

 private:
  void Dispatch(const Event& event);
  void AcceptFrontEnd();
  void ServeFrontEnd();
  Status WatchFrontEnds();

  ServerSettings settings_;
  Poller poller_;
  Device device_;
  std::optional<FrontEnd> front_end_;
  bool hosts_wait_ = false;
  bool is_over_ = false;
};

}  // namespace gantry::vmm::vsock
