// SPDX-License-Identifier: Apache-2.0
//
// What a sentry answers, on a socket, and what is made of it: taken from the socket, or looked at
// where it stays.
#include <sys/socket.h>
#include <unistd.h>

#include <gantry/toolkit/json/json_end.h>
#include <gantry/toolkit/json/json_member.h>

#include "plugins/gvisor/urpc/connection.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

/// A socket in which `bytes` lie, and their end.
UniqueFd SocketWith(std::string_view bytes) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
          "there are sockets");
  const UniqueFd writer(ends[1]);
  // What does not go in is not there.
  while (!bytes.empty()) {
    const ssize_t sent = send(writer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      break;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return UniqueFd(ends[0]);
}

void CheckEnd(std::string_view input) {
  JsonEnd whole;
  const size_t taken = whole.Feed(input);
  Require(taken <= input.size(), "no more is taken than there is");
  JsonEnd parts;
  size_t fed = 0;
  while (fed < taken) {
    fed += parts.Feed(input.substr(fed, 1));
  }
  Require(parts.state() == whole.state(), "an object ends where it does, in any portions");
}

}  // namespace

void FuzzOne(std::string_view input) {
  const bool stays = (TakeByte(input) & 1) != 0;
  CheckEnd(input);
  JsonMember(input, "result");
  urpc::Connection connection(SocketWith(input));
  const Deadline now = std::chrono::steady_clock::now();
  const auto answer =
      stays ? connection.Peek("Fuzz.One", now) : connection.Receive("Fuzz.One", now, 65536);
  if (answer) {
    Require(!answer->result.empty() && answer->result.size() <= input.size() + 4,
            "a result is a part of the answer, or null");
  } else {
    Require(!answer.error().text.empty(), "a failure says why");
  }
}

}  // namespace gantry::fuzz
