// SPDX-License-Identifier: Apache-2.0
//
// FrontDoor: over a change of the keeper's program.
#include <sys/epoll.h>

#include <algorithm>

#include "core/keeper/front_door.h"

namespace gantry::keeper {
namespace {

using async::TimePoint;

int64_t Nanoseconds(TimePoint time) { return time.time_since_epoch().count(); }

TimePoint At(int64_t ns) { return TimePoint(TimePoint::duration(ns)); }

}  // namespace

state::FrontDoor FrontDoor::Save() const {
  state::FrontDoor all;
  all.next_connection = next_connection_;
  all.next_order = next_order_;
  all.requests = counters_.requests;
  all.refused = counters_.refused;
  all.replayed = counters_.replayed;
  all.dropped = counters_.dropped;
  all.knows_engine = true;
  for (const auto& [path, listener] : listeners_) {
    all.listeners.push_back({*listener.place, listener.fd.get()});
  }
  for (const auto& [id, connection] : connections_) {
    state::Connection one;
    one.id = id;
    one.fd = connection->fd.get();
    one.place = *connection->place;
    one.since_ns = Nanoseconds(connection->since);
    one.in = connection->in.Save();
    one.last_stream = connection->last_stream;
    one.spoke = connection->spoke;
    one.engine_knows = connection->engine_knows;
    one.streaming = static_cast<uint32_t>(connection->streaming);
    one.stream_id = connection->stream_id;
    for (const auto& [stream, waiting] : connection->waiting) {
      one.waiting.push_back(waiting);
    }
    for (const std::string& frame : connection->out) {
      one.out += frame;
    }
    one.out.erase(0, connection->out_sent);
    all.connections.push_back(std::move(one));
  }
  return all;
}

void FrontDoor::Restore(const state::FrontDoor& all, link::Channel* engine, bool takes_streams) {
  engine_ = engine;
  takes_streams_ = engine == nullptr || takes_streams;
  next_connection_ = all.next_connection;
  next_order_ = all.next_order;
  counters_ = {all.requests, all.refused, all.replayed, all.dropped};
  for (const state::Listener& one : all.listeners) {
    Enter(one.place, UniqueFd(one.fd));
  }
  for (const state::Connection& one : all.connections) {
    RestoreConnection(one, all.knows_engine);
  }
  if (engine_ == nullptr) {
    EngineDown();
    return;
  }
  for (const auto& [id, connection] : connections_) {
    for (const auto& [stream, waiting] : connection->waiting) {
      if (waiting.deaths > 0 && !waiting.with_engine) {
        trials_.emplace_back(id, stream);
      }
    }
  }
}

void FrontDoor::RestoreConnection(const state::Connection& one, bool knows_engine) {
  auto connection = std::make_shared<Connection>();
  connection->id = one.id;
  const auto listener = listeners_.find(one.place.path);
  connection->place = listener != listeners_.end() ? listener->second.place
                                                   : std::make_shared<const Place>(one.place);
  connection->fd = UniqueFd(one.fd);
  connection->since = At(one.since_ns);
  connection->in.Restore(one.in);
  connection->held = connection->in.held();
  connection->last_stream = one.last_stream;
  connection->spoke = one.spoke;
  connection->engine_knows = one.engine_knows;
  connection->streaming = Streaming{std::min(one.streaming, uint32_t{3})};
  connection->stream_id = one.stream_id;
  if (connection->streaming == Streaming::kUnknown && one.last_stream != 0) {
    // Of a program of before there were streams.
    connection->streaming = Streaming::kNo;
  }
  AddBytes(*connection, connection->held);
  for (Waiting waiting : one.waiting) {
    if (!knows_engine) {
      waiting.with_engine = waiting.given;
    }
    waiting.given_at = waiting.order;
    const size_t cost = waiting.payload.size() + kRequestOverhead;
    connection->waiting_bytes += cost;
    AddBytes(*connection, cost);
    ++requests_waiting_;
    connection->waiting[waiting.stream] = std::move(waiting);
  }
  if (!one.out.empty()) {
    connection->out_bytes = one.out.size();
    connection->place->use.unread_bytes += one.out.size();
    connection->out.push_back(one.out);
  }
  Connection& entered = Enter(std::move(connection));
  if (entered.streaming == Streaming::kParked) {
    ++parked_;
    ++entered.place->use.parked;
  } else if (entered.streaming == Streaming::kOpening) {
    LimitOpening(entered);
  }
  Rearm(entered);
}

}  // namespace gantry::keeper
