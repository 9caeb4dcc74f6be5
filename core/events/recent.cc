// SPDX-License-Identifier: Apache-2.0
//
// The records are in a journal, and here only where each lies. The note is the record with the
// number 0, written anew before the old one is erased: of two, the reader keeps the first.
#include "core/events/recent.h"

#include <utility>

#include "core/log/log.h"

namespace gantry::events {
namespace {

constexpr uint64_t kNote = 0;

}  // namespace

Result<std::unique_ptr<Recent>> Recent::Open(UniqueFd memfd, RecentLimits limits) {
  std::vector<Journal::Record> records;
  GANTRY_TRY(Journal journal, Journal::Open(std::move(memfd), &records));
  std::unique_ptr<Recent> recent(new Recent(std::move(journal), limits));
  recent->TakeUp(std::move(records));
  return recent;
}

void Recent::TakeUp(std::vector<Journal::Record> records) {
  for (Journal::Record& record : records) {
    if (record.seq == kNote) {
      note_ = std::move(record.body);
      note_at_ = record.position;
      continue;
    }
    entries_.push_back({record.seq, record.position});
    bytes_ += record.position.bytes;
    last_ = record.seq;
  }
}

Status Recent::Add(std::string_view body) {
  ++last_;
  if (body.size() > limits_.bytes / 2) {
    return Fail(Code::kInvalidArgument, "keep a record of {} bytes: more than {}", body.size(),
                limits_.bytes / 2);
  }
  GANTRY_TRY(const Journal::Position position, journal_.Append(last_, body));
  entries_.push_back({last_, position});
  bytes_ += position.bytes;
  while (entries_.size() > limits_.records || bytes_ > limits_.bytes) {
    GANTRY_CHECK_OK(DropOldest());
  }
  CompactIfWorthIt();
  return {};
}

Status Recent::DropOldest() {
  const Journal::Position position = entries_.front().position;
  entries_.pop_front();
  bytes_ -= position.bytes;
  return journal_.Erase(position);
}

void Recent::CompactIfWorthIt() {
  if (!journal_.WorthCompacting()) {
    return;
  }
  std::vector<Journal::Live> live;
  live.reserve(entries_.size() + 1);
  if (note_at_.bytes != 0) {
    live.push_back({note_at_, {}});
  }
  for (const Entry& entry : entries_) {
    live.push_back({entry.position, {}});
  }
  if (const Status compacted = journal_.Compact(live); !compacted) {
    LogWarning("compact the recent events: {}", compacted.error().message);
    return;
  }
  auto moved = live.begin();
  if (note_at_.bytes != 0) {
    note_at_ = (moved++)->to;
  }
  for (Entry& entry : entries_) {
    entry.position = (moved++)->to;
  }
}

Result<Recent::Page> Recent::Read(uint64_t after, size_t most) const {
  Page page;
  if (after == 0 || after > last_) {
    after = entries_.empty() ? last_ : entries_.front().seq - 1;
  }
  page.last = after;
  for (const Entry& entry : entries_) {
    if (entry.seq <= after) {
      continue;
    }
    if (page.records.size() == most) {
      return page;
    }
    GANTRY_TRY(std::string body, journal_.Read(entry.position));
    page.lost += entry.seq - page.last - 1;
    page.last = entry.seq;
    page.records.push_back({entry.seq, std::move(body), entry.position});
  }
  page.lost += last_ - page.last;
  page.last = last_;
  return page;
}

Status Recent::SetNote(std::string note) {
  GANTRY_TRY(const Journal::Position position, journal_.Append(kNote, note));
  const Journal::Position old = std::exchange(note_at_, position);
  note_ = std::move(note);
  return old.bytes == 0 ? Status() : journal_.Erase(old);
}

}  // namespace gantry::events
