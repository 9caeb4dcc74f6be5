// SPDX-License-Identifier: Apache-2.0
//
// The queues of events: one for each container, and of each only the first is ready to go, so
// that containerd sees them in order. An event is in the journal before it is queued, and erased
// there once containerd has it: killed in between, it is published twice, never lost. Where there
// is no room, events of deleted containers that nobody needs any more go first, and ends of
// processes are taken whatever the limits say.
#include "core/events/outbox.h"

#include <algorithm>
#include <utility>

#include "core/log/log.h"

namespace gantry::events {
namespace {

constexpr std::string_view kPerContainer = "of one container (events.max_queued_per_container)";
constexpr std::string_view kBytesPerContainer = "of one container (events.max_bytes_per_container)";
constexpr std::string_view kPerAddress = "of one containerd";
constexpr std::string_view kTotal = "in all (events.max_queued)";

/// Never refused, never dropped.
bool TellsEnd(std::string_view topic) { return topic == kTaskExit || topic == kTaskDelete; }

/// Of no use any more to who learns that the container is deleted.
bool TellsBeginning(std::string_view topic) {
  return topic == kTaskCreate || topic == kTaskStart || topic == kTaskExecAdded ||
         topic == kTaskExecStarted || topic == kTaskPaused || topic == kTaskResumed;
}

size_t SizeOf(const Event& event) {
  return sizeof(Event) + event.payload.size() + event.topic.size() + event.type_url.size() +
         event.subject.address.size() + event.subject.ns.str().size() +
         event.subject.container.str().size();
}

}  // namespace

Outbox::Outbox(Journal journal, OutboxLimits limits, trace::Recorder* recorder)
    : journal_(std::move(journal)), limits_(limits), recorder_(recorder) {}

Result<std::unique_ptr<Outbox>> Outbox::Open(UniqueFd memfd, OutboxLimits limits,
                                             trace::Recorder* recorder) {
  std::vector<Journal::Record> records;
  GANTRY_TRY(Journal journal, Journal::Open(std::move(memfd), &records));
  std::unique_ptr<Outbox> outbox(new Outbox(std::move(journal), limits, recorder));
  outbox->Restore(std::move(records));
  return outbox;
}

void Outbox::Restore(std::vector<Journal::Record> records) {
  // Sequence numbers go up along the journal but for what a compaction that
  // was cut short left, so order by them.
  std::ranges::sort(records, {}, &Journal::Record::seq);
  for (Journal::Record& record : records) {
    next_seq_ = record.seq + 1;
    Result<Event> event = DecodeEvent(record.body);
    if (!event) {
      LogError("event {} of the journal is lost: {}", record.seq, event.error().message);
      IgnoreError(journal_.Erase(record.position), "it is read, and refused, again");
      continue;
    }
    Insert(record.seq, std::move(*event), record.position, true);
  }
}

Status Outbox::Check(const Event& event) const {
  if (event.subject.address.empty() || event.subject.ns.empty() ||
      event.subject.container.empty() || event.topic.empty() || event.timestamp_ns == 0) {
    return Fail(Code::kInvalidArgument, "queue event '{}': subject or time is missing",
                event.topic);
  }
  if (SizeOf(event) > limits_.event_bytes) {
    return Fail(Code::kInvalidArgument, "queue event '{}': {} bytes are more than {}", event.topic,
                SizeOf(event), limits_.event_bytes);
  }
  return {};
}

std::string_view Outbox::Exceeded(const Event& event) const {
  if (entries_.size() >= limits_.total ||
      counters_.queued_bytes + SizeOf(event) > limits_.total_bytes) {
    return kTotal;
  }
  const auto address = addresses_.find(event.subject.address);
  if (address == addresses_.end()) {
    return {};
  }
  if (address->second.count >= limits_.per_address) {
    return kPerAddress;
  }
  const auto queue = address->second.queues.find(event.subject);
  if (queue == address->second.queues.end()) {
    return {};
  }
  if (queue->second.events.size() >= limits_.per_container) {
    return kPerContainer;
  }
  return queue->second.bytes + SizeOf(event) > limits_.bytes_per_container ? kBytesPerContainer
                                                                           : std::string_view();
}

bool Outbox::DropOne(const Event& event, std::string_view limit) {
  for (const uint64_t seq : droppable_) {
    const Entry& entry = entries_.at(seq);
    const bool same =
        limit == kTotal ||
        (limit == kPerAddress && entry.event.subject.address == event.subject.address) ||
        entry.event.subject == event.subject;
    if (!entry.taken && same) {
      ++counters_.dropped;
      Remove(seq, Code::kAborted, "dropped to make room");
      return true;
    }
  }
  return false;
}

Status Outbox::MakeRoom(const Event& event) {
  while (true) {
    const std::string_view limit = Exceeded(event);
    if (limit.empty()) {
      return {};
    }
    if (DropOne(event, limit)) {
      continue;
    }
    if (TellsEnd(event.topic)) {
      return {};
    }
    ++counters_.refused;
    BeginStep(event, false).Ended(Code::kResourceExhausted, "too many wait");
    return Fail(Code::kResourceExhausted,
                "queue event '{}' for '{}': too many events {} wait (refused so far: {})",
                event.topic, event.subject.address, limit, counters_.refused);
  }
}

Status Outbox::Add(Event event) {
  GANTRY_CHECK_OK(Check(event));
  GANTRY_CHECK_OK(MakeRoom(event));
  const uint64_t seq = next_seq_++;
  Result<Journal::Position> position = journal_.Append(seq, EncodeEvent(event));
  if (!position) {
    LogError("event '{}' would not survive a restart of the engine: {}", event.topic,
             position.error().message);
    position = Journal::Position{};
  }
  ++counters_.added;
  Insert(seq, std::move(event), *position, false);
  return {};
}

trace::OpenStep Outbox::BeginStep(const Event& event, bool again) {
  if (recorder_ == nullptr) {
    return {};
  }
  const trace::Subject subject{event.subject.ns.str(), event.subject.container.str(), {}};
  return recorder_->Begin(trace::Kind::kEvent, subject, event.topic, again);
}

void Outbox::Insert(uint64_t seq, Event event, Journal::Position position, bool again) {
  Address& address = addresses_[event.subject.address];
  Queue& queue = address.queues[event.subject];
  if (event.topic == kTaskDelete) {
    std::ranges::copy_if(
        queue.events, std::inserter(droppable_, droppable_.end()),
        [this](uint64_t old) { return TellsBeginning(entries_.at(old).event.topic); });
  }
  if (queue.events.empty()) {
    address.ready.insert(seq);
  }
  queue.events.push_back(seq);
  queue.bytes += SizeOf(event);
  ++address.count;
  ++counters_.queued;
  counters_.queued_bytes += SizeOf(event);
  const trace::OpenStep step = BeginStep(event, again);
  entries_.emplace(seq, Entry{std::move(event), position, false, step});
}

bool Outbox::Ready(const std::string& address) const {
  const auto found = addresses_.find(address);
  return found != addresses_.end() && !found->second.ready.empty();
}

std::optional<Lease> Outbox::Take(const std::string& address) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end() || found->second.ready.empty()) {
    return std::nullopt;
  }
  const uint64_t seq = *found->second.ready.begin();
  found->second.ready.erase(found->second.ready.begin());
  Entry& entry = entries_.at(seq);
  entry.taken = true;
  return Lease{seq, entry.event};
}

void Outbox::GiveBack(uint64_t seq) {
  const auto found = entries_.find(seq);
  if (found != entries_.end() && std::exchange(found->second.taken, false)) {
    addresses_.at(found->second.event.subject.address).ready.insert(seq);
  }
}

void Outbox::Published(uint64_t seq) {
  if (entries_.contains(seq)) {
    ++counters_.published;
    Remove(seq, Code::kOk);
  }
}

void Outbox::Rejected(uint64_t seq) {
  if (entries_.contains(seq)) {
    ++counters_.rejected;
    Remove(seq, Code::kInvalidArgument, "containerd refuses it");
  }
}

void Outbox::Remove(uint64_t seq, Code code, std::string_view detail) {
  const auto node = entries_.extract(seq);
  const Entry& entry = node.mapped();
  entry.step.Ended(code, detail);
  const Subject& subject = entry.event.subject;
  if (entry.position.bytes > 0) {
    if (Status status = journal_.Erase(entry.position); !status) {
      LogError("event '{}' may be published again after a restart of the engine: {}",
               entry.event.topic, status.error().message);
    }
  }
  droppable_.erase(seq);
  --counters_.queued;
  counters_.queued_bytes -= SizeOf(entry.event);
  const auto address = addresses_.find(subject.address);
  const auto queue = address->second.queues.find(subject);
  std::deque<uint64_t>& events = queue->second.events;
  const bool was_first = events.front() == seq;
  std::erase(events, seq);
  queue->second.bytes -= SizeOf(entry.event);
  address->second.ready.erase(seq);
  if (events.empty()) {
    address->second.queues.erase(queue);
  } else if (was_first) {
    address->second.ready.insert(events.front());
  }
  if (--address->second.count == 0) {
    addresses_.erase(address);
  }
  CompactIfWorthIt();
}

void Outbox::CompactIfWorthIt() {
  if (!journal_.WorthCompacting()) {
    return;
  }
  std::vector<Journal::Live> live;
  for (const auto& [seq, entry] : entries_) {
    if (entry.position.bytes > 0) {
      live.push_back({entry.position, {}});
    }
  }
  if (Status status = journal_.Compact(live); !status) {
    LogWarning("journal of events keeps its size: {}", status.error().message);
    return;
  }
  auto next = live.begin();
  for (auto& [seq, entry] : entries_) {
    if (entry.position.bytes > 0) {
      entry.position = (next++)->to;
    }
  }
}

size_t Outbox::Queued(const std::string& address) const {
  const auto found = addresses_.find(address);
  return found == addresses_.end() ? 0 : found->second.count;
}

size_t Outbox::QueuedBytes(const Subject& subject) const {
  const auto address = addresses_.find(subject.address);
  if (address == addresses_.end()) {
    return 0;
  }
  const auto queue = address->second.queues.find(subject);
  return queue == address->second.queues.end() ? 0 : queue->second.bytes;
}

std::vector<std::string> Outbox::Addresses() const {
  std::vector<std::string> out;
  out.reserve(addresses_.size());
  for (const auto& [name, address] : addresses_) {
    out.push_back(name);
  }
  return out;
}

OutboxCounters Outbox::counters() const { return counters_; }

}  // namespace gantry::events
