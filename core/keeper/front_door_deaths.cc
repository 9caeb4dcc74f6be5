// SPDX-License-Identifier: Apache-2.0
//
// FrontDoor: which requests an engine is given, and what becomes of those that engines
// crash of.
#include <algorithm>
#include <functional>
#include <tuple>

#include "core/keeper/front_door.h"
#include "core/keeper/note.h"

namespace gantry::keeper {
namespace {

/// A request with so many deaths is given alone.
constexpr uint32_t kSuspect = 2;
/// And with so many to nobody any more.
constexpr uint32_t kMostDeaths = 3;
/// The same of one that was the only one.
constexpr uint32_t kMostDeathsAlone = 2;

/// It only waits for an end, be it for days.
bool OnlyWaits(std::string_view request) {
  const std::string method = RequestMethod(request);
  return method == "Wait" || method == "WaitSandbox";
}

Error CrashOf(std::string_view request, uint32_t deaths) {
  return Error{Code::kInternal,
               0,
               Format("answer '{}': the engine died {} times with this request, so no other one "
                      "gets it; gantry.log in gantry's run directory says how it died; report "
                      "that, and call again with another version",
                      RequestMethod(request), deaths),
               {}};
}

}  // namespace

void FrontDoor::EngineUp(link::Channel& engine, bool tells_recovery, bool takes_streams) {
  engine_ = &engine;
  takes_streams_ = takes_streams;

  struct Item {
    Connection* connection;
    uint32_t stream;
    Waiting* waiting;
  };

  std::vector<Item> items;
  std::vector<Item> suspects;
  for (const auto& [id, connection] : connections_) {
    connection->engine_knows = false;
    for (auto& [stream, waiting] : connection->waiting) {
      waiting.with_engine = false;
      if (connection->place->left_out.empty()) {
        auto& list = waiting.deaths < kSuspect ? items : suspects;
        list.push_back({connection.get(), stream, &waiting});
      }
    }
  }
  std::ranges::sort(items, {}, [](const Item& item) { return item.waiting->order; });
  // Before the calls for the processes whose streams they are.
  GiveStreams();
  for (const Item& item : items) {
    Give(*item.connection, item.stream, *item.waiting);
  }
  // The last one that an engine was given is the likeliest.
  std::ranges::sort(suspects, std::greater(), [](const Item& item) {
    return std::tuple(item.waiting->given_at, item.waiting->order);
  });
  trials_.clear();
  for (const Item& item : suspects) {
    trials_.emplace_back(item.connection->id, item.stream);
  }
  trial_ = {};
  loop_.Cancel(trial_timer_);
  if (tells_recovery) {
    trial_timer_ = loop_.After(limits_.trial, [this] { NextTrial(); });
  } else {
    NextTrial();
  }
}

void FrontDoor::Recovered() {
  if (engine_ != nullptr && trial_.first == 0) {
    NextTrial();
  }
}

void FrontDoor::NextTrial() {
  loop_.Cancel(trial_timer_);
  trial_ = {};
  while (engine_ != nullptr && trial_.first == 0 && !trials_.empty()) {
    const auto next = trials_.front();
    trials_.pop_front();
    const auto connection = connections_.find(next.first);
    if (connection == connections_.end()) {
      continue;
    }
    const auto waiting = connection->second->waiting.find(next.second);
    if (waiting != connection->second->waiting.end()) {
      trial_ = next;
      Give(*connection->second, next.second, waiting->second);
    }
  }
  if (trial_.first != 0) {
    trial_timer_ = loop_.After(limits_.trial, [this] { NextTrial(); });
  }
}

void FrontDoor::EngineCrashed(bool recovering) {
  std::vector<std::pair<std::shared_ptr<Connection>, uint32_t>> had;
  for (const auto& [id, connection] : connections_) {
    for (auto& [stream, waiting] : connection->waiting) {
      if (std::exchange(waiting.with_engine, false) && !OnlyWaits(waiting.payload)) {
        ++waiting.deaths;
        had.emplace_back(connection, stream);
      }
    }
  }
  const bool alone = had.size() == 1 && !recovering;
  for (const auto& [connection, stream] : had) {
    const auto found = connection->waiting.find(stream);
    if (connection->closed || found == connection->waiting.end() ||
        found->second.deaths < (alone ? kMostDeathsAlone : kMostDeaths)) {
      continue;
    }
    const Error error = CrashOf(found->second.payload, found->second.deaths);
    Note("error: call on '{}': {}", connection->place->path, error.message);
    ++counters_.dropped;
    Finish(*connection, stream);
    Write(*connection, stream, ErrorResponse(error.code, error.message));
    if (!connection->closed) {
      Rearm(*connection);
    }
  }
}

void FrontDoor::Forgive() {
  for (const auto& [id, connection] : connections_) {
    for (auto& [stream, waiting] : connection->waiting) {
      waiting.deaths = 0;
    }
  }
}

void FrontDoor::LeaveOut(const std::string& path, const std::string& why) {
  const auto listener = listeners_.find(path);
  if (listener == listeners_.end()) {
    return;
  }
  const std::shared_ptr<const Place> place = listener->second.place;
  place->left_out = why;
  if (!why.empty()) {
    RefuseWaiting(place);
  }
}

void FrontDoor::RefuseWaiting(const std::shared_ptr<const Place>& place) {
  std::vector<std::pair<std::shared_ptr<Connection>, uint32_t>> refused;
  for (const auto& [id, connection] : connections_) {
    for (const auto& [stream, waiting] : connection->waiting) {
      if (connection->place == place && !OnlyWaits(waiting.payload)) {
        refused.emplace_back(connection, stream);
      }
    }
  }
  for (const auto& [connection, stream] : refused) {
    if (!connection->closed) {
      Finish(*connection, stream);
      Refuse(*connection, stream, Error{Code::kInternal, 0, place->left_out, {}});
    }
    if (!connection->closed) {
      Rearm(*connection);
    }
  }
}

bool FrontDoor::IsLeftOut(Connection& connection, const Frame& frame) {
  if (connection.place->left_out.empty() || OnlyWaits(frame.payload)) {
    return false;
  }
  Refuse(connection, frame.stream, Error{Code::kInternal, 0, connection.place->left_out, {}});
  return true;
}

void FrontDoor::TakeIn(const Place& place) {
  if (std::exchange(place.left_out, {}).empty() || engine_ == nullptr) {
    return;
  }
  for (const auto& [id, connection] : connections_) {
    if (connection->place.get() != &place) {
      continue;
    }
    for (auto& [stream, waiting] : connection->waiting) {
      if (!waiting.with_engine) {
        Give(*connection, stream, waiting);
      }
    }
  }
}

}  // namespace gantry::keeper
