// SPDX-License-Identifier: Apache-2.0
//
// Who has dialled the control port and said no hello yet. Any process of the guest may dial, as
// often as it likes, and say nothing: nobody waits for it. So many are heard at a time, each for a
// while; where another one comes the oldest is let go.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/agent/greet.h"

namespace gantry::vmm {

/// Thread: one at a time.
class Newcomers {
 public:
  static constexpr size_t kMost = 64;
  /// From its dial to its whole hello.
  static constexpr std::chrono::milliseconds kPatience{2000};

  /// `listener`: does not block.
  static Result<std::unique_ptr<Newcomers>> On(UniqueFd listener,
                                               std::chrono::milliseconds patience = kPatience);
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;
  ~Newcomers() = default;

  /// For the watch; the same as long as this object.
  int fd() const { return epoll_.get(); }

  /// Takes who dials and hears what is said; what is left has another turn. The agent, where it is
  /// among them, else none. Errors: the last that was let go, and why, as `Newcomer::Hear`;
  /// kDeadlineExceeded: it has not said hello in time. Blocks: never.
  Result<std::optional<Greeted>> OnReadable(const std::string& session);

  size_t size() const { return known_.size(); }

 private:
  struct One {
    uint64_t number;
    Deadline until;
    Newcomer newcomer;
  };

  Newcomers(UniqueFd listener, UniqueFd epoll, UniqueFd timer, std::chrono::milliseconds patience);

  void Accept();
  void Drop(std::list<One>::iterator one);
  Result<std::optional<Greeted>> Hear(uint64_t number, const std::string& session);
  Status DropLate();
  /// For the oldest.
  void SetTimer();

  const UniqueFd listener_;
  const UniqueFd epoll_;
  const UniqueFd timer_;
  const std::chrono::milliseconds patience_;
  uint64_t last_number_ = 1;
  /// The oldest first, which is the first whose time is over.
  std::list<One> known_;
};

}  // namespace gantry::vmm
