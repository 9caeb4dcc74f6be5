// SPDX-License-Identifier: Apache-2.0
//
// Records in a memfd, such that an engine that dies at any instruction leaves a
// journal that the next one reads back: every record whose `Append` returned
// and whose `Erase` was not begun is there, no other ones but those.
//
// Layout: a header (magic, where the records begin), then records one behind
// the other: u32 length, u32 CRC of sequence number and body, u64 sequence
// number, u8 state, body. All little endian. A record is erased by setting its
// state, one byte. Reading ends at the first record that is not whole.
//
// Space comes back in two ways. When nothing is live the file is cut. Else
// `Compact` appends copies of the live records, then moves the header's
// "where the records begin" behind the old ones, in one write of eight bytes,
// then gives the pages before it back (a hole). Death between these steps
// leaves records twice, with the same sequence number: the reader keeps one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::events {

/// Thread: loop. Blocks: never (memory). Move-only.
class Journal {
 public:
  struct Position {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  struct Record {
    uint64_t seq = 0;
    std::string body;
    Position position;
  };

  /// Reads what is there into `records`, in the order it was appended; begins
  /// anew where there is no journal. What follows the last whole record is cut.
  static Result<Journal> Open(UniqueFd memfd, std::vector<Record>* records);

  Result<Position> Append(uint64_t seq, std::string_view body);
  Status Erase(Position position);
  /// The body of a record that is not erased.
  Result<std::string> Read(Position position) const;

  /// Where a live record lies and where it has been moved to.
  struct Live {
    Position from;
    Position to;
  };

  /// True when more is dead than live, by enough to be worth a `Compact`.
  bool WorthCompacting() const;
  /// `live`: all records that are not erased, in order; `to` is filled in.
  /// On failure the journal and all positions are as before.
  Status Compact(std::vector<Live>& live);

  uint64_t live_bytes() const { return live_bytes_; }

  uint64_t end() const { return end_; }

 private:
  explicit Journal(UniqueFd memfd) : memfd_(std::move(memfd)) {}

  Status Reset();
  Status SetBegin(uint64_t begin);

  UniqueFd memfd_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  uint64_t live_bytes_ = 0;
};

}  // namespace gantry::events
