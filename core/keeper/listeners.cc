// SPDX-License-Identifier: Apache-2.0
//
// FrontDoor: who may come in.
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/keeper/front_door.h"
#include "core/keeper/note.h"

namespace gantry::keeper {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::seconds kAcceptPause(1);

}  // namespace

Status FrontDoor::Listen(Place place) {
  if (listeners_.contains(place.path)) {
    return {};
  }
  IgnoreError(RemoveFile(place.path), "listening tells why it is still there");
  GANTRY_TRY(UniqueFd fd, ListenUnix(place.path));
  Enter(std::move(place), std::move(fd));
  return {};
}

void FrontDoor::Enter(Place place, UniqueFd listening) {
  const std::string path = place.path;
  Listener& listener = listeners_[path];
  listener.place = std::make_shared<const Place>(std::move(place));
  listener.fd = std::move(listening);
  listener.watch = loop_.Watch(listener.fd.get(), accepting_ ? EPOLLIN : 0U,
                               [this, path](uint32_t) { Accept(path); });
}

bool FrontDoor::IsIdle(const std::string& path) const {
  const auto found = listeners_.find(path);
  // Every connection holds its place, too.
  return found == listeners_.end() || found->second.place.use_count() == 1;
}

void FrontDoor::Close(const std::string& path) {
  const auto found = listeners_.find(path);
  if (found == listeners_.end()) {
    return;
  }
  // A client that came in just before is still let in: its connect(2) succeeded.
  Accept(path);
  loop_.Unwatch(found->second.watch);
  const std::shared_ptr<const Place> place = found->second.place;
  listeners_.erase(found);
  TakeIn(*place);
  IgnoreError(RemoveFile(path), "the next one to listen there removes it");
}

void FrontDoor::Accept(const std::string& path) {
  const auto found = listeners_.find(path);
  for (int i = 0; found != listeners_.end() && accepting_ && i < kAcceptsPerTurn; ++i) {
    if (found->second.place->use.connections >= limits_.connections_per_place) {
      loop_.Rearm(found->second.watch, 0);
      return;
    }
    if (connections_.size() >= limits_.connections && !MakeRoom()) {
      PauseAccepting();
      return;
    }
    auto accepted = AcceptUnix(found->second.fd.get());
    if (!accepted) {
      Note("accept on '{}': {}", path, accepted.error().message);
      PauseAccepting();
      return;
    }
    std::optional<UniqueFd>& socket = *accepted;
    if (!socket) {
      return;
    }
    const auto peer = PeerOf(socket->get());
    if (peer && peer->uid == geteuid()) {
      AddConnection(std::move(*socket), found->second.place);
    }
  }
}

void FrontDoor::AddConnection(UniqueFd fd, std::shared_ptr<const Place> place) {
  auto connection = std::make_shared<Connection>();
  connection->id = next_connection_++;
  connection->place = std::move(place);
  connection->fd = std::move(fd);
  connection->since = loop_.Now();
  Enter(std::move(connection));
}

FrontDoor::Connection& FrontDoor::Enter(std::shared_ptr<Connection> connection) {
  ++connection->place->use.connections;
  connection->watch =
      loop_.Watch(connection->fd.get(), EPOLLIN, [this, id = connection->id](uint32_t events) {
        const auto found = connections_.find(id);
        if (found != connections_.end()) {
          const auto hold = found->second;
          OnReady(*hold, events);
        }
      });
  const uint64_t id = connection->id;
  return *connections_.emplace(id, std::move(connection)).first->second;
}

bool FrontDoor::MakeRoom() {
  const auto now = loop_.Now();
  for (const auto& [id, connection] : connections_) {
    if (now - connection->since < limits_.silence) {
      return false;
    }
    if (!connection->spoke) {
      const auto hold = connection;
      CloseConnection(*hold);
      return true;
    }
  }
  return false;
}

void FrontDoor::PauseAccepting() {
  accepting_ = false;
  for (const auto& [path, listener] : listeners_) {
    loop_.Rearm(listener.watch, 0);
  }
  accept_timer_ = loop_.After(kAcceptPause, [this] { ResumeAccepting(); });
}

void FrontDoor::ResumeAccepting() {
  if (accepting_) {
    return;
  }
  loop_.Cancel(accept_timer_);
  accepting_ = true;
  for (const auto& [path, listener] : listeners_) {
    loop_.Rearm(listener.watch, EPOLLIN);
  }
}

}  // namespace gantry::keeper
