// SPDX-License-Identifier: Apache-2.0
#include "core/door/listener.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/log/log.h"

namespace gantry::door {
namespace {

constexpr int kAcceptsPerTurn = 16;
/// Where there is no descriptor to be had.
constexpr std::chrono::seconds kAcceptPause(1);

bool IsTrusted(int connection) {
  const Result<PeerCredentials> peer = PeerOf(connection);
  if (peer && (peer->uid == 0 || peer->uid == geteuid())) {
    return true;
  }
  LogWarning("a connection of uid {} is closed: only root may call",
             peer ? std::to_string(peer->uid) : "?");
  return false;
}

}  // namespace

Listener::Listener(async::Loop& loop, UniqueFd socket, std::function<void(UniqueFd)> take)
    : loop_(loop), socket_(std::move(socket)), take_(std::move(take)) {
  watch_ = loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

Listener::~Listener() {
  Stop();
  for (const auto& [fd, open] : open_) {
    loop_.Unwatch(open.watch);
  }
}

void Listener::Stop() {
  loop_.Unwatch(watch_);
  loop_.Cancel(pause_);
  watch_ = {};
}

void Listener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (open_.size() >= kMaxConnections) {
      loop_.Rearm(watch_, 0);
      return;
    }
    Result<std::optional<UniqueFd>> accepted = AcceptUnix(socket_.get());
    if (!accepted) {
      LogWarning("accept a connection: {}", accepted.error().message);
      loop_.Rearm(watch_, 0);
      pause_ = loop_.After(kAcceptPause, [this] {
        pause_ = {};
        loop_.Rearm(watch_, EPOLLIN);
      });
      return;
    }
    std::optional<UniqueFd>& connection = *accepted;
    if (!connection) {
      return;
    }
    if (IsTrusted(connection->get())) {
      Enter(std::move(*connection));
    }
  }
}

void Listener::Enter(UniqueFd connection) {
  Result<UniqueFd> own = connection.Duplicate();
  if (!own) {
    LogWarning("a connection is closed: {}", own.error().message);
    return;
  }
  const int fd = own->get();
  Open& open = open_[fd];
  open.socket = std::move(*own);
  open.watch = loop_.Watch(fd, EPOLLRDHUP, [this, fd](uint32_t) { Closed(fd); });
  take_(std::move(connection));
}

void Listener::Closed(int fd) {
  if (const auto open = open_.extract(fd)) {
    loop_.Unwatch(open.mapped().watch);
  }
  if (watch_ && !pause_) {
    loop_.Rearm(watch_, EPOLLIN);
  }
}

}  // namespace gantry::door
