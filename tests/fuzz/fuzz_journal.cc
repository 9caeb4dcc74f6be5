// SPDX-License-Identifier: Apache-2.0
//
// The journal of events that an engine finds when it starts.
#include <algorithm>
#include <string>
#include <vector>

#include <gantry/toolkit/descriptors/memfd.h>

#include "core/events/event.h"
#include "core/events/journal.h"
#include "core/events/outbox.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

UniqueFd FileWith(std::string_view bytes) {
  Result<UniqueFd> memfd = CreateMemfd("fuzz");
  Require(memfd.has_value() && WriteAt(memfd->get(), 0, bytes).has_value(),
          "there is a file with the input");
  return std::move(*memfd);
}

/// A number that no record has.
uint64_t UnusedSeq(const std::vector<events::Journal::Record>& records) {
  uint64_t seq = 1;
  while (std::ranges::find(records, seq, &events::Journal::Record::seq) != records.end()) {
    ++seq;
  }
  return seq;
}

}  // namespace

void FuzzOne(std::string_view input) {
  IgnoreError(events::DecodeEvent(input), "it only must not crash");
  const UniqueFd file = FileWith(input);
  std::vector<events::Journal::Record> before;
  Result<UniqueFd> copy = file.Duplicate();
  Require(copy.has_value(), "there is a descriptor");
  Result<events::Journal> journal = events::Journal::Open(std::move(*copy), &before);
  Require(journal.has_value(), "whatever is in it, a journal can be opened");
  Require(journal->Append(UnusedSeq(before), "new").has_value(), "and appended to");

  std::vector<events::Journal::Record> after;
  copy = file.Duplicate();
  Require(copy.has_value() && events::Journal::Open(std::move(*copy), &after).has_value(),
          "and opened again");
  Require(!after.empty() && after.back().body == "new", "the new record is there");

  Require(events::Outbox::Open(FileWith(input)).has_value(), "an outbox takes it, too");
}

}  // namespace gantry::fuzz
