// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the engine in the middle of a call, at each step that changes the
// bundle.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "tests/contract/harness/client.h"
#include "tests/contract/harness/node.h"

namespace gantry::contract {

/// Sees files that appear in a bundle: a write of the record makes two, the
/// unfinished one and the one in its place.
class BundleWatch {
 public:
  explicit BundleWatch(const std::string& bundle)
      : inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    inotify_add_watch(inotify_.get(), bundle.c_str(), IN_CREATE | IN_MOVED_TO);
  }

  /// Waits for the `count`th; false: `answer` was readable before.
  bool WaitFor(size_t count, int answer) {
    while (seen_ < count) {
      std::array<pollfd, 2> fds = {pollfd{inotify_.get(), POLLIN, 0}, pollfd{answer, POLLIN, 0}};
      if (poll(fds.data(), fds.size(), kPatience) <= 0) {
        return false;
      }
      Count();
      if (fds[1].revents != 0) {
        return seen_ >= count;
      }
    }
    return true;
  }

 private:
  static constexpr int kPatience = 10'000;

  void Count() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    const ssize_t got = read(inotify_.get(), buffer.data(), buffer.size());
    for (ssize_t at = 0; at < got; ++seen_) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      at += static_cast<ssize_t>(sizeof(event) + event.len);
    }
  }

  UniqueFd inotify_;
  size_t seen_ = 0;
};

/// What came of a call in the middle of which the engine was killed.
template <class Response>
struct Interrupted {
  Result<Response> answer;
  /// The engine was still at work when it died.
  bool in_time = false;
};

/// Sends the call and kills the engine at the `moment`th change of the bundle; 0:
/// at once.
template <class Response, class Request>
Interrupted<Response> CallAndKill(const Node& node, const std::string& bundle,
                                  const TaskClient& client, const char* method,
                                  const Request& request, size_t moment) {
  const pid_t engine = node.Engine();
  BundleWatch watch(bundle);
  auto pending = client.Begin<Response>(method, request);
  if (!pending) {
    return {std::unexpected(pending.error()), false};
  }
  const bool in_time = watch.WaitFor(moment, pending->fd());
  kill(engine, SIGKILL);
  return {pending->Get(), in_time};
}

/// Runs `round(moment)` for one moment after the other, until the answer comes first.
inline void AtEachMoment(const std::function<bool(size_t moment)>& round) {
  constexpr size_t kMost = 12;
  for (size_t moment = 0; moment < kMost; ++moment) {
    SCOPED_TRACE("killed at change " + std::to_string(moment) + " of the bundle");
    if (!round(moment) || ::testing::Test::HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace gantry::contract
