// SPDX-License-Identifier: Apache-2.0
#include "core/keeper_client/parked_streams.h"

#include <sys/socket.h>

#include "core/log/log.h"

namespace gantry::keeper_client {

void ParkedStreams::Opened(const std::string& address, const std::string& id, Stream stream) {
  const Name name{address, id};
  Entry& entry = entries_[name];
  if (entry.parked.connection != 0) {
    LogWarning("stream '{}' was opened once more before its process was there", id);
    shutdown(entry.parked.socket.get(), SHUT_RDWR);
    Took(entry.parked.connection);
  }
  const uint64_t connection = stream.connection;
  Entry& parked = entries_[name];
  parked.parked = std::move(stream);
  names_[connection] = name;
  Tell(parked);
}

void ParkedStreams::Tell(Entry& entry) {
  if (entry.parked.connection == 0 || !entry.arrived) {
    return;
  }
  Result<UniqueFd> second = entry.parked.socket.Duplicate();
  if (!second) {
    LogError("give a stream to its process: {}", second.error().message);
    return;
  }
  // A copy: it may forget itself.
  const Arrived arrived = entry.arrived;
  arrived({entry.parked.connection, entry.parked.stream, std::move(*second)});
}

void ParkedStreams::Closed(uint64_t connection) {
  const auto found = names_.find(connection);
  if (found == names_.end()) {
    return;
  }
  const Name name = found->second;
  names_.erase(found);
  entries_[name].parked = Stream();
  Tidy(name);
}

uint64_t ParkedStreams::Await(const std::string& address, const std::string& id, Arrived arrived) {
  const Name name{address, id};
  Entry& entry = entries_[name];
  awaited_.erase(entry.awaited);
  entry.awaited = next_++;
  entry.arrived = std::move(arrived);
  awaited_[entry.awaited] = name;
  const uint64_t awaited = entry.awaited;
  Tell(entry);
  return awaited;
}

void ParkedStreams::Forget(uint64_t awaited) {
  const auto found = awaited_.find(awaited);
  if (found == awaited_.end()) {
    return;
  }
  const Name name = found->second;
  awaited_.erase(found);
  Entry& entry = entries_[name];
  entry.awaited = 0;
  entry.arrived = nullptr;
  Tidy(name);
}

void ParkedStreams::Took(uint64_t connection) {
  Closed(connection);
  took_(connection);
}

void ParkedStreams::Tidy(const Name& name) {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.parked.connection == 0 &&
      found->second.awaited == 0) {
    entries_.erase(found);
  }
}

}  // namespace gantry::keeper_client
