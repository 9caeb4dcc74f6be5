// SPDX-License-Identifier: Apache-2.0
//
// The threads that compile.
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/cache/artifacts.h"

namespace gantry::wasm {
namespace {

/// Of what may be another time: a node that is slow or short of memory gets better.
constexpr int64_t kRetrySeconds = 600;

/// Seconds since the epoch; 0: not at all.
int64_t KeptUntil(Code code, int64_t now) {
  switch (code) {
    case Code::kInvalidArgument:
      return EntryHeader::kForEver;
    case Code::kResourceExhausted:
    case Code::kInternal:
      return now + kRetrySeconds;
    default:
      return 0;
  }
}

}  // namespace

void Artifacts::Work() {
  while (const FlightPtr flight = Next()) {
    const auto outcome = CompileOne(*flight);
    const bool kept = outcome->kept_until > 0;
    {
      const MutexLock lock(mutex_);
      ++tally_.compiles;
      tally_.failures += outcome->failure ? 1 : 0;
      Land(flight, outcome);
      if (!kept) {
        // It is the answer to those who wait, and to nobody who comes now.
        flights_.erase(flight->id.Key());
      }
    }
    landed_.notify_all();
    if (kept) {
      KeepOnDisk(*flight, *outcome);
      // Not before it is on disk: who came meanwhile found it here.
      const MutexLock lock(mutex_);
      flights_.erase(flight->id.Key());
    }
  }
}

/// Null: there is nothing to do any more.
Artifacts::FlightPtr Artifacts::Next() {
  MutexLock lock(mutex_);
  ++idle_;
  while (queue_.empty() && !stopped_) {
    queued_.wait(lock.native());
  }
  --idle_;
  if (stopped_) {
    return nullptr;
  }
  FlightPtr flight = std::move(queue_.front());
  queue_.pop_front();
  queue_bytes_ -= flight->module.size;
  return flight;
}

std::shared_ptr<const Outcome> Artifacts::CompileOne(const Flight& flight) {
  auto outcome = std::make_shared<Outcome>();
  Result<Compiler::Compiled> compiled = compiler_.Compile(flight.module);
  if (compiled) {
    outcome->file = std::move(compiled->artifact);
    outcome->bytes = compiled->bytes;
    outcome->kind = compiled->kind;
    return outcome;
  }
  outcome->kept_until = KeptUntil(compiled.error().code, options_.now());
  outcome->failure = std::move(compiled).error();
  return outcome;
}

void Artifacts::KeepOnDisk(const Flight& flight, const Outcome& outcome) {
  const int64_t now = options_.now();
  EntryHeader header{.id = flight.id,
                     .kind = outcome.kind,
                     .made_at = now,
                     .kept_until = outcome.kept_until,
                     .length = outcome.bytes};
  UniqueFd text;
  if (outcome.failure) {
    header.failure = outcome.failure->code;
    const std::string message = outcome.failure->message.substr(0, EntryHeader::kMaxText);
    header.length = message.size();
    auto file = SealedMemfd("wasm-failure", message, MemfdUse::kRead);
    if (!file) {
      return;
    }
    text = std::move(*file);
  }
  if (const Status saved = store_.Save(header, outcome.failure ? text : outcome.file, now);
      !saved) {
    Note(&Tally::unsaved,
         Format("{}; it is compiled again after a restart", saved.error().message));
  }
  if (const auto kept = store_.Trim(flight.id.compiler, now)) {
    const MutexLock lock(mutex_);
    tally_.disk_bytes = kept->bytes;
  }
}

}  // namespace gantry::wasm
