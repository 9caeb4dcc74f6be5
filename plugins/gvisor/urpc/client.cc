// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/client.h"

#include <poll.h>

#include <utility>

namespace gantry::urpc {
namespace {

/// The sentry closes connections at its end only. Anything that can be read where nothing was
/// asked is as bad.
bool IsUsable(const Connection& connection) {
  pollfd one{connection.fd().get(), POLLIN, 0};
  return poll(&one, 1, 0) == 0;
}

/// The answer was whole: the connection is ready for the next request.
bool IsWhole(const Outcome<Answer>& answer) {
  return answer || answer.error().cause == Cause::kRefused ||
         answer.error().cause == Cause::kWorkload;
}

}  // namespace

Outcome<Connection> Client::TakeIdle(Deadline deadline) {
  while (true) {
    const MutexLock lock(mutex_);
    if (idle_.empty()) {
      break;
    }
    Connection one = std::move(idle_.back());
    idle_.pop_back();
    if (IsUsable(one)) {
      return one;
    }
  }
  return Connection::Open(path_, deadline);
}

void Client::Keep(Connection connection) {
  const MutexLock lock(mutex_);
  if (!hung_up_ && idle_.size() < kMaxIdle) {
    idle_.push_back(std::move(connection));
  }
}

Outcome<Answer> Client::Call(const Request& request, Deadline deadline) {
  GANTRY_TRY(Connection connection, TakeIdle(deadline));
  GANTRY_CHECK_OK(connection.Send(request, deadline));
  Outcome<Answer> answer = connection.Receive(request.method, deadline, request.max_answer);
  if (IsWhole(answer)) {
    Keep(std::move(connection));
  }
  return answer;
}

Outcome<Connection> Client::Begin(const Request& request, Deadline deadline) {
  GANTRY_TRY(Connection connection, Connection::Open(path_, deadline));
  GANTRY_CHECK_OK(connection.Send(request, deadline));
  return connection;
}

void Client::Hangup() {
  std::vector<Connection> closing;
  const MutexLock lock(mutex_);
  hung_up_ = true;
  closing.swap(idle_);
}

}  // namespace gantry::urpc
