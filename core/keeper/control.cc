// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/control.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/keeper/note.h"

namespace gantry::keeper {
namespace {

constexpr int kConnectionsPerTurn = 64;

}  // namespace

Control::Control(async::Loop& loop, UniqueFd listener, Handler handler)
    : loop_(loop), listener_(std::move(listener)), handler_(std::move(handler)) {
  IgnoreError(SetNonblocking(listener_.get(), true), "it came so from ListenUnix");
  watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

Control::~Control() { loop_.Unwatch(watch_); }

void Control::Accept() {
  for (int i = 0; i < kConnectionsPerTurn; ++i) {
    auto accepted = AcceptUnix(listener_.get());
    if (!accepted) {
      // Without descriptors left: the next try in a second, not in a busy loop.
      Note("accept a control connection: {}", accepted.error().message);
      loop_.Rearm(watch_, 0);
      loop_.After(std::chrono::seconds(1), [this] { loop_.Rearm(watch_, EPOLLIN); });
      return;
    }
    std::optional<UniqueFd>& socket = *accepted;
    if (!socket) {
      return;
    }
    const auto peer = PeerOf(socket->get());
    if (!peer || peer->uid != geteuid() || clients_.size() >= kMaxClients) {
      continue;
    }
    Add(std::move(*socket));
  }
}

uint64_t Control::Add(UniqueFd socket) {
  const uint64_t id = next_++;
  clients_[id] = std::make_unique<link::Channel>(
      loop_, std::move(socket),
      [this, id](link::Message message) { handler_(std::move(message), Reply(*this, id)); },
      [this, id](const Error&) { clients_.erase(id); });
  return id;
}

bool Control::idle() const {
  return std::ranges::all_of(clients_, [](const auto& client) { return client.second->idle(); });
}

state::Control Control::Save(uint64_t asker) const {
  state::Control state;
  state.listener = listener_.get();
  for (const auto& [id, client] : clients_) {
    if (id == asker) {
      state.asker = client->fd();
    } else {
      state.clients.push_back(client->fd());
    }
  }
  return state;
}

std::optional<Control::Reply> Control::Restore(const state::Control& state) {
  for (const int32_t client : state.clients) {
    Add(UniqueFd(client));
  }
  if (!state.asker) {
    return std::nullopt;
  }
  return Reply(*this, Add(UniqueFd(*state.asker)));
}

void Control::Send(uint64_t client, link::Type type, std::string_view body) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) {
    IgnoreError(found->second->Send(type, body), "a client that has gone needs nothing");
  }
}

}  // namespace gantry::keeper
