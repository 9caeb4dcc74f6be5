// SPDX-License-Identifier: Apache-2.0
//
// A keeper as far as its control socket goes: an instance that is announced is at `socket`, an
// engine that is upgraded falls back to what it is upgraded to, and the keeper itself is never
// upgraded.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/link/channel.h"
#include "core/link/messages.h"
#include "core/link/paths.h"
#include "core/link/status_messages.h"

namespace gantry::test {

class FakeKeeper {
 public:
  FakeKeeper(const std::string& run_dir, std::string socket)
      : socket_(std::move(socket)),
        listener_(Listen(run_dir + "/" + link::kControlSocket)),
        thread_([this] { Serve(); }) {}

  FakeKeeper(const FakeKeeper&) = delete;
  FakeKeeper& operator=(const FakeKeeper&) = delete;

  ~FakeKeeper() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  std::vector<link::Announce> announced() const {
    const MutexLock lock(mutex_);
    return announced_;
  }

  std::vector<link::Delete> deleted() const {
    const MutexLock lock(mutex_);
    return deleted_;
  }

 private:
  static UniqueFd Listen(const std::string& path) {
    Result<UniqueFd> listener = ListenUnix(path);
    if (!listener || !SetNonblocking(listener->get(), false)) {
      throw std::runtime_error("listen at " + path);
    }
    return std::move(*listener);
  }

  void Serve() {
    while (true) {
      UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection && errno != EINTR) {
        return;
      }
      if (connection) {
        Answer(link::BlockingChannel(std::move(connection)));
      }
    }
  }

  void Answer(link::BlockingChannel channel) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    const auto message = channel.Receive(limit);
    if (!message) {
      return;
    }
    const MutexLock lock(mutex_);
    if (auto announce = message->As<link::Announce>()) {
      announced_.push_back(std::move(*announce));
      Reply(channel, link::Announced{"unix://" + socket_});
    } else if (auto request = message->As<link::Delete>()) {
      deleted_.push_back(std::move(*request));
      Reply(channel, link::Deleted{.pid = 0, .status = 0, .exited_at_ns = 0, .known = true});
    } else if (message->As<link::Query>()) {
      link::KeeperStatus status;
      status.keeper_pid = 4;
      status.engine_state = static_cast<uint32_t>(link::EngineState::kUp);
      status.instances.emplace_back().announce.id = "left";
      Reply(channel, status);
    } else if (auto upgrade = message->As<link::Upgrade>()) {
      Reply(channel, link::Upgraded{9, upgrade->engine});
    } else if (message->As<link::UpgradeKeeper>()) {
      Reply(channel,
            link::Failed{static_cast<int32_t>(Code::kFailedPrecondition), "it is no keeper"});
    }
  }

  template <class T>
  static void Reply(link::BlockingChannel& channel, const T& answer) {
    IgnoreError(channel.Send(T::kType, EncodeProto(answer),
                             std::chrono::steady_clock::now() + std::chrono::minutes(1)),
                "the test has ended");
  }

  const std::string socket_;
  const UniqueFd listener_;
  /// Guards the lists.
  mutable Mutex mutex_;
  std::vector<link::Announce> announced_ GANTRY_GUARDED_BY(mutex_);
  std::vector<link::Delete> deleted_ GANTRY_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gantry::test
