// SPDX-License-Identifier: Apache-2.0
//
// Clients of a server: so many connections, each of which sends the next when it has its answer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/performance/samples.h"

namespace gantry::bench {

/// What is said over a connection, one question at a time.
class Talk {
 public:
  Talk() = default;
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;
  virtual ~Talk() = default;

  /// The next question.
  virtual Result<std::string> Ask() = 0;
  /// A part of its answer. Whether that is all of it. Errors: it is not what it should be.
  virtual Result<bool> Hear(std::string_view bytes) = 0;
};

/// Thread: one. Owner: of the connections.
class Callers {
 public:
  Callers();

  void Add(UniqueFd socket, std::unique_ptr<Talk> talk);

  /// `calls` in all; their times in microseconds. Errors: a connection has failed or what was said
  /// over it; no answer for 10 s.
  Result<std::vector<double>> Turn(int calls);

 private:
  struct One {
    UniqueFd socket;
    std::unique_ptr<Talk> talk;
    Clock::time_point sent = {};
  };

  static Status Send(One& one);
  /// Whether it has all of its answer.
  static Result<bool> Receive(const One& one);

  UniqueFd epoll_;
  std::vector<One> all_;
};

}  // namespace gantry::bench
