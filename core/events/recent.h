// SPDX-License-Identifier: Apache-2.0
//
// The last so many records, numbered from 1 without a gap, in a memfd that outlives the engine. The
// oldest go where there are too many. Who reads has a position, the number of the last record that
// he knows, and costs nothing: one that is slow finds that some have gone, and how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/events/journal.h"

namespace gantry::events {

struct RecentLimits {
  size_t records = 2048;
  /// Of all bodies together.
  size_t bytes = size_t{512} << 10;
};

/// Thread: loop. Blocks: never (memory).
class Recent {
 public:
  struct Page {
    std::vector<Journal::Record> records;
    /// Records behind the position that nobody can read any more.
    uint64_t lost = 0;
    /// The position behind this page.
    uint64_t last = 0;
  };

  /// Takes up what is there. Owner: takes `memfd`; the caller keeps another descriptor of it where
  /// it outlives the engine. What holds no records begins anew. Errors: of reading and writing it.
  static Result<std::unique_ptr<Recent>> Open(UniqueFd memfd, RecentLimits limits = {});
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;
  ~Recent() = default;

  /// The next record. One that cannot be written is among those that are lost to who reads.
  /// Errors: kInvalidArgument for one above half of `bytes`; of writing.
  Status Add(std::string_view body);

  /// At most `most` records behind `after`; 0: from the oldest that there is, of which none is
  /// lost. A position that is not reached yet is one of another memfd: it is taken for 0.
  Result<Page> Read(uint64_t after, size_t most) const;

  /// The number of the newest; 0: there never was one.
  uint64_t last() const { return last_; }

  /// What its owner keeps beside the records, at first nothing.
  const std::string& note() const { return note_; }

  Status SetNote(std::string note);

 private:
  struct Entry {
    uint64_t seq = 0;
    Journal::Position position;
  };

  Recent(Journal journal, RecentLimits limits) : journal_(std::move(journal)), limits_(limits) {}

  void TakeUp(std::vector<Journal::Record> records);
  Status DropOldest();
  void CompactIfWorthIt();

  Journal journal_;
  RecentLimits limits_;
  std::deque<Entry> entries_;
  size_t bytes_ = 0;
  uint64_t last_ = 0;
  std::string note_;
  Journal::Position note_at_;
};

}  // namespace gantry::events
