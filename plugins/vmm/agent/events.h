// SPDX-License-Identifier: Apache-2.0
//
// What a guest tells without being asked, made harmless: whoever is in the guest may have taken the
// agent over, and tells then what he wants. What this module gives on is well-formed; whether there
// is such a container, and whether it has ended already, is known to who gets it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <gantry/process.h>

#include "plugins/vmm/protocol/envelope.h"

namespace gantry::vmm {

struct AgentExit {
  std::string container{};
  /// Empty: the container's init.
  std::string exec{};
  ExitStatus exit{};
};

/// Called by `AgentClient::OnReadable`, one at a time. They must not call the client: no answer
/// would be read. Null: not wanted.
struct AgentEvents {
  std::function<void(const AgentExit& exit)> exited;
  /// `kills`: since the container was made; what was told before may be told again.
  std::function<void(const std::string& container, uint64_t kills)> out_of_memory;
  /// A line of the agent's log, of printable characters.
  std::function<void(const std::string& line)> log;
  /// Once: the connection is gone, and all calls fail from now on.
  std::function<void(const Error& why)> gone;
};

/// Of a status that a guest has told: 0 to 255.
uint32_t ClampStatus(uint32_t status);
/// Of a time that a guest has told: neither before `begin` nor after `now`.
int64_t ClampTime(int64_t time_ns, int64_t begin_ns, int64_t now_ns);

/// Of a text of a guest's: a line of printable characters, at most 1 KiB.
std::string PrintableLine(std::string text);

/// Lets through as many lines as a log may have: so many at once, and so many a second.
/// Thread: one.
class LineLimit {
 public:
  static constexpr uint32_t kAtOnce = 64;
  static constexpr int64_t kEachNs = 100'000'000;

  bool Take(int64_t now_ns);

 private:
  int64_t full_at_ns_ = 0;
};

/// Gives an event on. False: it is none, or malformed; it is dropped then.
bool Deliver(const protocol::Envelope& event, const AgentEvents& events, int64_t begin_ns,
             LineLimit& lines);

}  // namespace gantry::vmm
