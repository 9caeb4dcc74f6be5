// SPDX-License-Identifier: Apache-2.0
//
// Metrics over HTTP, on a thread of their own, which shares nothing with the engine's loop: it asks
// for a moment and makes text of it. Whoever connects, whatever he sends, and however slowly he
// reads holds up other scrapers at most, and those only within these limits: past
// `kMostConnections` the one that has been idle for longest is closed, or else the one that has
// taken longest; who has not taken a page after kMostPages later ones is closed as well.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/metrics/connection.h"
#include "core/metrics/pages.h"

namespace gantry::metrics {

/// Connections and the pages that they are sent. Thread: the loop's.
class Listener {
 public:
  static constexpr size_t kMostConnections = 256;
  /// That are held for slow readers.
  static constexpr size_t kMostPages = 8;

  struct Options {
    /// See core/config/listen_address.h.
    std::string address;
    ConnectionLimits limits{};
    /// For so long a page is given again.
    async::Duration fresh = std::chrono::milliseconds(100);
  };

  Listener(async::Loop& loop, Options options, Pages::Look look);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Listens, and where that cannot be, tries again now and then. Blocks: for the file system.
  void Begin();

  size_t connections() const { return connections_.size(); }

 private:
  void Accept();
  void MakeRoom();
  void DropOldPages();

  async::Loop& loop_;
  const Options options_;
  Pages pages_;
  UniqueFd socket_;
  async::WatchId watch_;
  async::TimerId timer_;
  async::Duration pause_ = std::chrono::seconds(1);
  std::map<const Connection*, std::shared_ptr<Connection>> connections_;
};

/// The thread. Thread: any.
class Server {
 public:
  /// `look` is called on the server's thread, and its `done` may be called on any, as long as the
  /// server is there.
  Server(Listener::Options options, Pages::Look look);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  async::Loop loop_;
  Listener listener_;
  std::jthread thread_;
};

}  // namespace gantry::metrics
