// SPDX-License-Identifier: Apache-2.0
//
// The threads that compile.
#include <optional>
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

void Artifacts::WorkAll() {
  while (std::optional<Work> work = Next()) {
    Do(std::move(*work));
  }
}

void Artifacts::Do(Work work) {
  const FlightPtr flight = work.flight;
  const auto lock = store_.Lock(flight->id);
  if (!lock && lock.error().code == Code::kAborted &&
      std::chrono::steady_clock::now() < work.latest) {
    PutAside(std::move(work));
    return;
  }
  // Where it cannot be locked, two may compile it: that is time, and nothing else.
  auto outcome = LookOnDisk(flight->id);
  const bool found = outcome != nullptr;
  const auto begun = std::chrono::steady_clock::now();
  if (!found) {
    outcome = CompileOne(*flight);
  }
  const bool kept = outcome->kept_until > 0;
  {
    const MutexLock held(mutex_);
    queue_.Charge(work.asker, std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::steady_clock::now() - begun));
    tally_.disk_hits += found ? 1 : 0;
    tally_.compiles += found ? 0 : 1;
    tally_.failures += !found && outcome->failure ? 1 : 0;
    Land(flight, outcome);
    if (!kept || found) {
      // It is the answer to those who wait, and to nobody who comes now; or has been kept.
      flights_.erase(flight->id.Key());
    }
  }
  landed_.notify_all();
  if (kept && !found) {
    KeepOnDisk(*flight, *outcome);
    // Not before it is on disk: who came meanwhile found it here.
    const MutexLock held(mutex_);
    flights_.erase(flight->id.Key());
  }
}

/// None: there is nothing to do any more.
std::optional<Artifacts::Work> Artifacts::Next() {
  MutexLock lock(mutex_);
  ++idle_;
  std::optional<Work> work;
  while (!stopped_ && !(work = TakeNext())) {
    if (aside_.empty()) {
      queued_.wait(lock.native());
    } else {
      queued_.wait_until(lock.native(), aside_.front().at);
    }
  }
  --idle_;
  return stopped_ ? std::nullopt : std::move(work);
}

std::optional<Artifacts::Work> Artifacts::TakeNext() {
  const Deadline now = std::chrono::steady_clock::now();
  if (!aside_.empty() && aside_.front().at <= now) {
    Work work = std::move(aside_.front());
    aside_.pop_front();
    return work;
  }
  const auto job = queue_.Next();
  if (!job) {
    return std::nullopt;
  }
  return Work{.flight = flights_.at(job->key),
              .asker = job->asker,
              .at = now,
              .latest = now + options_.elsewhere};
}

/// The kernel does not tell of the end of somebody's lock without waiting for it, and others'
/// modules are not to wait meanwhile.
void Artifacts::PutAside(Work work) {
  constexpr std::chrono::milliseconds kPause{20};
  work.at = std::chrono::steady_clock::now() + kPause;
  const MutexLock lock(mutex_);
  aside_.push_back(std::move(work));
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
