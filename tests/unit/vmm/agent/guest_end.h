// SPDX-License-Identifier: Apache-2.0
//
// A guest of a test's own: the other end of a client's connection, which says what the test wants,
// and a thread that calls the client as the engine's watch would.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/vmm/agent/client.h"

namespace gantry::vmm {

inline Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

inline Deadline Soon() { return In(std::chrono::seconds(30)); }

class GuestEnd {
 public:
  GuestEnd();
  GuestEnd(const GuestEnd&) = delete;
  GuestEnd& operator=(const GuestEnd&) = delete;
  ~GuestEnd();

  AgentClient& client() { return *client_; }

  /// Bytes of the guest. False: nobody takes them any more.
  bool Say(std::string_view bytes);
  bool SayFrame(const protocol::Envelope& envelope);
  /// The next request of the host's; none: the connection is closed.
  std::optional<protocol::Envelope> Hear();
  /// Answers the next request with `body`.
  void Answer(const std::string& body);

  /// What the client has given on, of which the test waits for some.
  std::vector<AgentExit> WaitForExits(size_t count);
  /// Why the connection is gone, once it is.
  std::string WaitForGone();

  std::vector<std::string> lines();
  std::vector<std::pair<std::string, uint64_t>> memory();

  /// Closes the guest's end.
  void Hangup() { end_.reset(); }

  const UniqueFd& end() const { return end_; }

 private:
  UniqueFd end_;
  UniqueFd stop_;
  protocol::FrameReader frames_{protocol::kMaxFromHost};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AgentExit> exits_;
  std::vector<std::string> lines_;
  std::vector<std::pair<std::string, uint64_t>> memory_;
  std::optional<std::string> gone_;
  std::unique_ptr<AgentClient> client_;
  std::thread reader_;
};

protocol::Envelope EventOf(protocol::Kind kind, std::string body);

}  // namespace gantry::vmm
