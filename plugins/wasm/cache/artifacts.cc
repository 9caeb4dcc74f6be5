// SPDX-License-Identifier: Apache-2.0
//
// Who asks, and waits; artifacts_work.cc has those who compile.
#include "plugins/wasm/cache/artifacts.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/memfd.h>

namespace gantry::wasm {
namespace {

/// To say what it is takes the compiler some milliseconds.
constexpr std::chrono::seconds kDescribing{20};

Result<Artifact> HandOut(const Outcome& outcome) {
  if (outcome.failure) {
    return std::unexpected(*outcome.failure);
  }
  GANTRY_TRY(UniqueFd file, ReopenForReading(outcome.file));
  return Artifact{.file = std::move(file), .kind = outcome.kind};
}

std::shared_ptr<const Outcome> Failed(Error error) {
  return std::make_shared<const Outcome>(Outcome{.failure = std::move(error), .kept_until = 0});
}

}  // namespace

Artifacts::Artifacts(SandboxContext& context, Compiler::OpenProgram program, CacheOptions options)
    : context_(context),
      options_(std::move(options)),
      store_(options_.directory, options_.max_disk),
      compiler_(context, std::move(program), options_.limits),
      recent_(options_.max_memory),
      queue_({.modules = options_.max_waiting, .bytes = options_.max_waiting_bytes}) {}

Artifacts::~Artifacts() {
  compiler_.Stop();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    threads = std::move(threads_);
  }
  queued_.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

Result<Sha256Digest> Artifacts::CompilerDigest(std::chrono::milliseconds limit) {
  const MutexLock lock(describe_mutex_);
  if (!digest_) {
    GANTRY_TRY(const std::string line,
               compiler_.Describe(std::min<std::chrono::milliseconds>(limit, kDescribing)));
    digest_ = Sha256Of(line);
  }
  return *digest_;
}

Result<Artifact> Artifacts::Get(const ModuleBytes& module, const Asker& asker,
                                std::chrono::milliseconds limit) {
  // A day is as good as no limit, and can be added to a time.
  const Deadline deadline = std::chrono::steady_clock::now() +
                            std::min<std::chrono::milliseconds>(limit, std::chrono::hours(24));
  GANTRY_TRY(const Sha256Digest compiler, CompilerDigest(Left(deadline)));
  const EntryId id{.module = module.digest, .compiler = compiler};
  FlightPtr flight;
  bool first = false;
  {
    MutexLock lock(mutex_);
    const int64_t now = options_.now();
    if (const auto known = recent_.Find(id.Key(), now); known.outcome) {
      ++tally_.memory_hits;
      lock.Unlock();
      if (known.hourly) {
        store_.Touch(id, now);
      }
      return HandOut(*known.outcome);
    }
    GANTRY_TRY(flight, Join(module, id, asker, first));
  }
  if (first) {
    LandFromDisk(flight, asker);
  }
  GANTRY_TRY(const auto outcome, Await(flight, deadline));
  return HandOut(*outcome);
}

/// `first`: there is none yet, and the caller is to see to it.
Result<Artifacts::FlightPtr> Artifacts::Join(const ModuleBytes& module, const EntryId& id,
                                             const Asker& asker, bool& first) {
  const auto found = flights_.find(id.Key());
  first = found == flights_.end();
  if (!first) {
    queue_.Join(id.Key(), asker);
    return found->second;
  }
  GANTRY_TRY(UniqueFd file, module.file.Duplicate());
  auto flight = std::make_shared<Flight>();
  flight->id = id;
  flight->module = {.file = std::move(file),
                    .size = module.size,
                    .digest = module.digest,
                    .functions = module.functions};
  flights_[id.Key()] = flight;
  return flight;
}

/// Null: it is not there, or cannot be had.
std::shared_ptr<const Outcome> Artifacts::LookOnDisk(const EntryId& id) {
  Result<ArtifactStore::Found> found = store_.Load(id, options_.now());
  if (!found) {
    if (found.error().code != Code::kNotFound) {
      Note(&Tally::damaged, Format("{}; it is compiled again", found.error().message));
    }
    return nullptr;
  }
  if (options_.retry && found->header.failure != Code::kOk &&
      found->header.kept_until != EntryHeader::kForEver) {
    return nullptr;
  }
  auto outcome = std::make_shared<Outcome>();
  outcome->kept_until = found->header.kept_until;
  if (found->header.failure == Code::kOk) {
    outcome->kind = found->header.kind;
    outcome->bytes = found->header.length;
    outcome->file = std::move(found->content);
    return outcome;
  }
  auto text = ReadAt(found->content.get(), 0, EntryHeader::kMaxText);
  if (!text) {
    return nullptr;
  }
  outcome->failure = Error{found->header.failure, 0, std::move(*text), std::string()};
  return outcome;
}

/// Or has it wait for its turn.
void Artifacts::LandFromDisk(const FlightPtr& flight, const Asker& asker) {
  auto outcome = LookOnDisk(flight->id);
  {
    const MutexLock lock(mutex_);
    tally_.disk_hits += outcome ? 1 : 0;
    if (!outcome) {
      if (const Status queued = Queue(flight, asker); queued) {
        return;
      } else {
        outcome = Failed(queued.error());
      }
    }
    Land(flight, std::move(outcome));
    flights_.erase(flight->id.Key());
  }
  landed_.notify_all();
}

Status Artifacts::Queue(const FlightPtr& flight, const Asker& asker) {
  if (idle_ <= queue_.size() && threads_.size() < options_.compiles) {
    try {
      threads_.emplace_back([this] { WorkAll(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        return Fail(Code::kResourceExhausted, "compile the module: start a thread: {}",
                    error.what());
      }
    }
  }
  GANTRY_TRY(const auto lost, queue_.Add(flight->id.Key(), flight->module.size, asker));
  for (const std::string& key : lost) {
    const auto found = flights_.find(key);
    Land(found->second,
         Failed({Code::kResourceExhausted, 0,
                 Format("compile the module: it has given way to those of others: this tenant has "
                        "most of the {} that wait for the compiler, try again later",
                        queue_.size()),
                 std::string()}));
    flights_.erase(found);
  }
  if (!lost.empty()) {
    landed_.notify_all();
  }
  queued_.notify_one();
  return {};
}

Result<std::shared_ptr<const Outcome>> Artifacts::Await(const FlightPtr& flight,
                                                        Deadline deadline) {
  MutexLock lock(mutex_);
  while (!flight->outcome) {
    if (landed_.wait_until(lock.native(), deadline) == std::cv_status::timeout &&
        !flight->outcome) {
      return Fail(Code::kDeadlineExceeded,
                  "compile the module: it is not done in time; it goes on, try again later");
    }
  }
  return flight->outcome;
}

/// For those who wait, and those who come later.
void Artifacts::Land(const FlightPtr& flight, std::shared_ptr<const Outcome> outcome) {
  if (outcome->kept_until > 0) {
    recent_.Add(flight->id.Key(), outcome, options_.now());
  }
  flight->outcome = std::move(outcome);
}

Result<ArtifactStore::Kept> Artifacts::Clean(const std::set<Sha256Digest>& used, int64_t before) {
  return store_.Clean(used, before, options_.now());
}

std::vector<BackendCount> Artifacts::Counts() const {
  const MutexLock lock(mutex_);
  return {{"", "cache_disk_hits", tally_.disk_hits},  {"", "cache_memory_hits", tally_.memory_hits},
          {"", "cache_compiles", tally_.compiles},    {"", "cache_failures", tally_.failures},
          {"", "cache_damaged", tally_.damaged},      {"", "cache_unsaved", tally_.unsaved},
          {"", "cache_waiting", queue_.size()},       {"", "cache_memory_bytes", recent_.bytes()},
          {"", "cache_disk_bytes", tally_.disk_bytes}};
}

/// The first of its kind is told in the log, and all are counted.
void Artifacts::Note(uint64_t Tally::* tally, std::string_view message) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = tally_.*tally == 0;
    ++(tally_.*tally);
  }
  if (first) {
    context_.Log(LogLevel::kWarning, Format("{} (said once)", message));
  }
}

}  // namespace gantry::wasm
