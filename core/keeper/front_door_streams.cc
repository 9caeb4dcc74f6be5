// SPDX-License-Identifier: Apache-2.0
//
// FrontDoor: connections on which a client opens a stream. containerd makes one for each of a
// process's streams, before the call that makes the process. All that is read of it here is which
// stream is meant, and the answer is given here, too: once, whatever becomes of engines. Then it is
// parked, with all that comes over it unread, until an engine has it in its store.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "core/keeper/front_door.h"
#include "core/keeper/note.h"

namespace gantry::keeper {

Status FrontDoor::OpenStream(Connection& connection, const Frame& frame) {
  // Its stream is counted as that of any request.
  Frame unary = frame;
  unary.flags = 0;
  GANTRY_CHECK_OK(CheckStream(connection, unary));
  if (!takes_streams_) {
    return Fail(Code::kUnimplemented, "open a stream: the engine is of before it could stream");
  }
  GANTRY_CHECK_OK(MakeRoomToPark(connection));
  connection.streaming = Streaming::kOpening;
  LimitOpening(connection);
  return {};
}

void FrontDoor::LimitOpening(Connection& connection) {
  connection.init_timer = loop_.After(limits_.silence, [this, id = connection.id] {
    if (const auto found = connections_.find(id); found != connections_.end()) {
      const auto hold = found->second;
      HangUp(*hold);
    }
  });
}

Status FrontDoor::MakeRoomToPark(const Connection& connection) {
  const bool own = connection.place->use.parked >= limits_.parked_per_place;
  if (!own && parked_ < limits_.parked) {
    return {};
  }
  const auto now = loop_.Now();
  for (const auto& [id, other] : connections_) {
    if (other->streaming == Streaming::kParked && (!own || other->place == connection.place) &&
        now - other->since >= limits_.parked_patience) {
      const auto hold = other;
      Note("stream '{}' on '{}' goes for another: no process has asked for it", hold->stream_id,
           hold->place->path);
      HangUp(*hold);
      return {};
    }
  }
  return Fail(Code::kResourceExhausted, "open a stream: {} wait for their processes",
              own ? connection.place->use.parked : parked_);
}

void FrontDoor::OnStreamFrame(Connection& connection, const Frame& frame) {
  loop_.Cancel(std::exchange(connection.init_timer, {}));
  if (const Status parked = Park(connection, frame); !parked) {
    connection.streaming = Streaming::kNo;
    Refuse(connection, connection.last_stream, parked.error());
  }
}

Status FrontDoor::Park(Connection& connection, const Frame& frame) {
  if (frame.type != kFrameData || frame.stream != connection.last_stream || frame.skipped) {
    return Fail(Code::kInvalidArgument, "open a stream: its first message did not come");
  }
  GANTRY_TRY(connection.stream_id, StreamIdOf(frame.payload));
  GANTRY_CHECK_OK(MakeRoomToPark(connection));
  const std::string open = StreamOpenFrame(frame.stream);
  if (send(connection.fd.get(), open.data(), open.size(), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(open.size())) {
    // These are the first bytes to it: it has gone.
    CloseConnection(connection);
    return {};
  }
  connection.streaming = Streaming::kParked;
  ++parked_;
  ++connection.place->use.parked;
  if (engine_ != nullptr) {
    GiveStream(connection);
  } else {
    on_parked_();
  }
  return {};
}

/// Also where an engine has a descriptor of it.
void FrontDoor::HangUp(Connection& connection) {
  shutdown(connection.fd.get(), SHUT_RDWR);
  CloseConnection(connection);
}

/// Its client has closed it.
void FrontDoor::WatchParked(Connection& connection, uint32_t events) {
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    CloseConnection(connection);
  }
}

void FrontDoor::GiveStream(Connection& connection) {
  Result<UniqueFd> second = connection.fd.Duplicate();
  if (!second) {
    Note("stream '{}': {}", connection.stream_id, second.error().message);
    return;
  }
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(*second));
  connection.engine_knows = true;
  IgnoreError(engine_->Send(link::StreamOpened{connection.id, connection.place->address(),
                                               connection.last_stream, connection.stream_id},
                            std::move(fds)),
              "with the engine gone the next one gets it");
}

void FrontDoor::GiveStreams() {
  std::vector<std::shared_ptr<Connection>> parked;
  for (const auto& [id, connection] : connections_) {
    if (connection->streaming == Streaming::kParked) {
      parked.push_back(connection);
    }
  }
  for (const auto& connection : parked) {
    if (takes_streams_) {
      GiveStream(*connection);
    } else {
      HangUp(*connection);
    }
  }
}

void FrontDoor::Taken(const link::StreamTaken& taken) {
  const auto found = connections_.find(taken.connection);
  if (found == connections_.end() || found->second->streaming != Streaming::kParked) {
    return;
  }
  const auto hold = found->second;
  // It has not closed: others have it.
  hold->engine_knows = false;
  CloseConnection(*hold);
}

void FrontDoor::Unpark(Connection& connection) {
  loop_.Cancel(std::exchange(connection.init_timer, {}));
  if (connection.streaming == Streaming::kParked) {
    --parked_;
    --connection.place->use.parked;
  }
}

}  // namespace gantry::keeper
