// SPDX-License-Identifier: Apache-2.0
//
// What the keeper says: answers, which go to who asked; what the link itself keeps or answers; and
// the rest, which is the observer's.
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/keeper_client/keeper_link.h"
#include "core/log/log.h"

namespace gantry::keeper_client {

template <class T, class Handler>
bool KeeperLink::Deliver(const link::Message& message, Handler&& handler) {
  if (Result<T> decoded = message.As<T>(); decoded) {
    handler(std::move(*decoded));
  } else {
    LogError("keeper's message of type {}: {}", static_cast<int>(message.type),
             decoded.error().message);
  }
  return true;
}

void KeeperLink::OnMessage(link::Message message) {
  const auto answered = [&]<class T>(std::type_identity<T>) {
    if (Result<T> decoded = message.As<T>(); decoded) {
      OnAnswer(decoded->tag, std::move(message));
    } else {
      LogError("keeper's answer: {}", decoded.error().message);
    }
  };
  switch (message.type) {
    case link::Type::kSpawned:
      return answered(std::type_identity<link::Spawned>());
    case link::Type::kAdopted:
      return answered(std::type_identity<link::Adopted>());
    case link::Type::kPutDone:
      return answered(std::type_identity<link::PutDone>());
    case link::Type::kTaken:
      return answered(std::type_identity<link::Taken>());
    case link::Type::kMemberAdded:
      return answered(std::type_identity<link::MemberAdded>());
    default:
      if (!Keep(message) && !Announce(message)) {
        LogWarning("keeper sent a message of type {}, which this engine does not know",
                   static_cast<int>(message.type));
      }
  }
}

/// What it keeps of what the keeper says unasked. False: that is another message.
bool KeeperLink::Keep(link::Message& message) {
  switch (message.type) {
    case link::Type::kWelcome:
      return Deliver<link::Welcome>(message, [&](const link::Welcome& m) {
        hears_recovery_ = m.hears_recovery;
        keeper_confines_ = m.confines;
        keeper_fills_roots_ = m.fills_roots;
      });
    case link::Type::kPing:
      return Deliver<link::Ping>(message, [&](const link::Ping& ping) {
        IgnoreError(channel_->Send(link::Pong{ping.number}), "a keeper that is gone asks no more");
        observer_.OnPinged();
      });
    case link::Type::kProtect:
      return Deliver<link::Protect>(message, [&](const link::Protect& m) {
        protected_[m.instance] = std::hash<std::string>()(message.body);
      });
    case link::Type::kStreamOpened:
      return Deliver<link::StreamOpened>(message, [&](link::StreamOpened m) {
        if (message.fds.empty()) {
          LogError("stream '{}' of a client did not arrive (EMFILE?)", m.id);
          return;
        }
        streams_.Opened(m.address, m.id, {m.connection, m.stream, std::move(message.fds.front())});
      });
    default:
      return false;
  }
}

/// What the keeper says unasked, to the observer. False: not known.
bool KeeperLink::Announce(const link::Message& message) {
  switch (message.type) {
    case link::Type::kInstanceAdded:
      return Deliver<link::InstanceAdded>(
          message, [&](link::InstanceAdded m) { observer_.OnInstanceAdded(std::move(m)); });
    case link::Type::kInstanceRemoved:
      return Deliver<link::InstanceRemoved>(message, [&](link::InstanceRemoved m) {
        protected_.erase(m.number);
        observer_.OnInstanceRemoved(m);
      });
    case link::Type::kStoredNames:
      return Deliver<link::StoredNames>(
          message, [&](link::StoredNames m) { observer_.OnStoredNames(std::move(m.names)); });
    case link::Type::kNamedSpawn:
      return Deliver<link::NamedSpawn>(
          message, [&](const link::NamedSpawn& m) { observer_.OnNamedSpawn(m); });
    case link::Type::kEndedNames:
      return Deliver<link::EndedNames>(
          message, [&](const link::EndedNames& m) { observer_.OnEndedNames(m); });
    case link::Type::kWatched:
      return Deliver<link::Watched>(message,
                                    [&](const link::Watched& m) { observer_.OnWatched(m); });
    case link::Type::kExit:
      return Deliver<link::Exit>(message, [&](const link::Exit& m) { observer_.OnExit(m); });
    case link::Type::kSnapshotEnd:
      observer_.OnSnapshotEnd();
      return true;
    case link::Type::kRequest:
      return Deliver<link::Request>(message,
                                    [&](link::Request m) { observer_.OnRequest(std::move(m)); });
    case link::Type::kConnectionClosed:
      return Deliver<link::ConnectionClosed>(message, [&](link::ConnectionClosed m) {
        streams_.Closed(m.connection);
        observer_.OnConnectionClosed(m.connection);
      });
    case link::Type::kDeleteCall:
      return Deliver<link::DeleteCall>(
          message, [&](const link::DeleteCall& m) { observer_.OnDeleteCall(m); });
    default:
      return false;
  }
}

}  // namespace gantry::keeper_client
