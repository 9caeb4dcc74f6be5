// SPDX-License-Identifier: Apache-2.0
//
// The events that containerd has not acknowledged yet, per containerd and in
// order per container, in memory and in a journal that outlives the engine.
//
// Limits. Every queue is bounded. When a bound is reached, the oldest events
// that say how a container by now deleted once came up (create, start,
// exec-added, exec-started, paused, resumed) make room; when there are none,
// the new event is refused and counted. Exits and deletes are never refused nor
// dropped: their number is bounded by the processes that exist, and no new
// ones can be started while containerd, who asks for them, is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/events/event.h"
#include "core/events/journal.h"
#include "core/trace/recorder.h"

namespace gantry::events {

struct OutboxLimits {
  size_t per_container = 1024;
  size_t bytes_per_container = size_t{4} << 20;
  /// Per containerd, so that one that never comes back leaves room to the others.
  size_t per_address = 16384;
  size_t total = 65536;
  size_t total_bytes = size_t{32} << 20;
  size_t event_bytes = size_t{1} << 20;
};

struct OutboxCounters {
  uint64_t added = 0;
  uint64_t published = 0;
  /// Dropped to make room.
  uint64_t dropped = 0;
  /// Refused by the limits.
  uint64_t refused = 0;
  /// Dropped because containerd refuses them.
  uint64_t rejected = 0;
  size_t queued = 0;
  size_t queued_bytes = 0;
};

/// An event handed out to be published. `seq` names it to the outbox.
struct Lease {
  uint64_t seq = 0;
  Event event;
};

/// Thread: loop.
class Outbox {
 public:
  /// Takes back what is in the journal. Owner: takes `memfd`; the caller keeps
  /// another descriptor of it where it outlives the engine. An empty memfd, and
  /// one that holds no journal, begins anew. `recorder`, which outlives it, is told of each event;
  /// null: nobody is.
  /// Errors: of reading and writing it.
  static Result<std::unique_ptr<Outbox>> Open(UniqueFd memfd, OutboxLimits limits = {},
                                              trace::Recorder* recorder = nullptr);
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox() = default;

  /// Queues `event`; it is in the journal when this returns. A journal that
  /// cannot be written is logged, the event is queued all the same.
  /// Errors: kResourceExhausted by the limits; kInvalidArgument for an event
  /// above `event_bytes`, without address, namespace or container, or not dated.
  Status Add(Event event);

  /// The oldest event for `address` of a container that has no other one out.
  std::optional<Lease> Take(const std::string& address);
  /// Whether `Take` would give one.
  bool Ready(const std::string& address) const;
  /// It was published: gone, here and in the journal.
  void Published(uint64_t seq);
  /// containerd will never take it: gone too.
  void Rejected(uint64_t seq);
  /// It could not be published: the container's next one again.
  void GiveBack(uint64_t seq);

  /// Events for `address`, those handed out included.
  size_t Queued(const std::string& address) const;
  /// Of the events for a container.
  size_t QueuedBytes(const Subject& subject) const;
  /// Where events are for.
  std::vector<std::string> Addresses() const;
  OutboxCounters counters() const;

 private:
  struct Entry {
    Event event;
    Journal::Position position;
    bool taken = false;
    trace::OpenStep step;
  };

  /// Of one container.
  struct Queue {
    std::deque<uint64_t> events;
    size_t bytes = 0;
  };

  struct Address {
    std::map<Subject, Queue> queues;
    /// The first events of the queues that have none out.
    std::set<uint64_t> ready;
    size_t count = 0;
  };

  Outbox(Journal journal, OutboxLimits limits, trace::Recorder* recorder);
  Status Check(const Event& event) const;
  Status MakeRoom(const Event& event);
  /// Which limit `event` would pass; empty: none.
  std::string_view Exceeded(const Event& event) const;
  bool DropOne(const Event& event, std::string_view limit);
  void Restore(std::vector<Journal::Record> records);
  trace::OpenStep BeginStep(const Event& event, bool again);
  void Insert(uint64_t seq, Event event, Journal::Position position, bool again);
  /// `detail`: why, where containerd has not taken it.
  void Remove(uint64_t seq, Code code, std::string_view detail = {});
  void CompactIfWorthIt();

  Journal journal_;
  OutboxLimits limits_;
  trace::Recorder* recorder_;
  uint64_t next_seq_ = 1;
  std::map<uint64_t, Entry> entries_;
  std::map<std::string, Address> addresses_;
  /// May make room: their containers have been deleted since.
  std::set<uint64_t> droppable_;
  OutboxCounters counters_;
};

}  // namespace gantry::events
