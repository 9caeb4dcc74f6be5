// SPDX-License-Identifier: Apache-2.0
//
// What systemd, or whatever else has started the keeper and wants to know, is told of it
// (sd_notify(3), written by hand since the keeper is static): that it serves, that its
// loop still turns, and that it ends. Where nobody wants to know, nothing happens.
#pragma once

#include <string_view>

#include "core/async/loop.h"
#include "core/keeper/state.h"

namespace gantry::keeper {

/// Who wants to know, by $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID. Takes them, and
/// what goes with sockets that were handed over, out of the environment: they are not the
/// engine's. To be called before there are threads.
state::ServiceManager TakeServiceManager();

/// Thread: the keeper's only one. Blocks: never; what cannot be sent now is dropped.
class ServiceManager {
 public:
  ServiceManager(async::Loop& loop, state::ServiceManager told);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// It serves. From now on the loop tells the watchdog that it turns, three times in the
  /// time that the watchdog gives. Again, by the next program in this process: harmless.
  void Ready();
  /// It ends, and nobody is to start it again for that.
  void Stopping();

  const state::ServiceManager& state() const { return told_; }

 private:
  void Tell(std::string_view what) const;
  void Pet();

  async::Loop& loop_;
  state::ServiceManager told_;
  async::TimerId timer_{};
};

}  // namespace gantry::keeper
