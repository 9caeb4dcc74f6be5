// SPDX-License-Identifier: Apache-2.0
//
// An agent of a test's: it dials, says hello, answers whatever it is asked with an empty answer,
// and dials again when its connection is gone, as the real one does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gantry/unique_fd.h>

#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm {

class AgentDouble {
 public:
  /// Dials `path`, which may come later. `versions`: those that it speaks, from 1 on.
  explicit AgentDouble(std::string path, uint32_t versions = 1);
  AgentDouble(const AgentDouble&) = delete;
  AgentDouble& operator=(const AgentDouble&) = delete;
  ~AgentDouble();

  /// What it was asked, the first of that kind. Waits for it.
  std::optional<protocol::Envelope> Asked(protocol::Kind kind);
  /// Tells an event on the connection that there is.
  bool Tell(protocol::Kind kind, std::string body);
  /// Waits until it has been welcomed so often.
  bool WaitForWelcomes(size_t count);
  /// Closes its connection, and dials again where `again`.
  void Hangup(bool again);

  /// From now on it answers nothing.
  void BeSilent() { silent_ = true; }

 private:
  void Run();
  /// False: the connection is gone.
  bool Greet(int socket, protocol::FrameReader& frames);
  void Serve(int socket, protocol::FrameReader& frames);
  std::optional<protocol::Envelope> Next(int socket, protocol::FrameReader& frames);

  const std::string path_;
  const uint32_t versions_;
  UniqueFd stop_;
  std::atomic<bool> silent_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  UniqueFd socket_;
  std::string session_;
  size_t welcomes_ = 0;
  bool again_ = true;
  std::vector<protocol::Envelope> asked_;
  std::thread thread_;
};

}  // namespace gantry::vmm
