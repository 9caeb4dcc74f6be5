// SPDX-License-Identifier: Apache-2.0
//
// One thread works the queue off, and ends with it. An answer that is not believed any more is
// given until there is another one: no pod waits for that.
#include "plugins/vmm/machine/canary.h"

#include <algorithm>

#include <gantry/format.h>

namespace gantry::vmm {
namespace {

Error Leaving() {
  return {Code::kUnavailable, 0, "find out whether KVM works: the engine ends", {}};
}

}  // namespace

CanaryRuns::~CanaryRuns() {
  Leave();
  std::thread last;
  {
    const MutexLock lock(mutex_);
    last = std::move(thread_);
  }
  if (last.joinable()) {
    last.join();
  }
}

void CanaryRuns::Leave() {
  const MutexLock lock(mutex_);
  left_ = true;
  queue_.clear();
  changed_.notify_all();
}

bool CanaryRuns::has_left() {
  const MutexLock lock(mutex_);
  return left_;
}

bool CanaryRuns::IsBelieved(const Found& found) const {
  return found.what.accelerator == Accelerator::kKvm || clock_() < found.at + kNextCanary;
}

Status CanaryRuns::MakeRoom() {
  if (known_.size() < kMaxKnown) {
    return {};
  }
  const auto oldest =
      std::ranges::find(known_, false, [](const EntryPtr& one) { return one->runs; });
  if (oldest == known_.end()) {
    return Fail(Code::kResourceExhausted,
                "find out whether KVM works: {} VMMs and kernels are to be tried already",
                known_.size());
  }
  known_.erase(oldest);
  return {};
}

Result<CanaryRuns::EntryPtr> CanaryRuns::EntryOf(const KvmQuestion& question) {
  std::string key = KvmKeyOf(question);
  if (left_) {
    return std::unexpected(Leaving());
  }
  const auto known = std::ranges::find(known_, key, [](const EntryPtr& one) { return one->key; });
  if (known != known_.end()) {
    return *known;
  }
  GANTRY_CHECK_OK(MakeRoom());
  auto entry = std::make_shared<Entry>(Entry{.question = question, .key = std::move(key)});
  known_.push_back(entry);
  Enqueue(entry);
  return entry;
}

void CanaryRuns::Enqueue(const EntryPtr& entry) {
  entry->runs = true;
  queue_.push_back(entry);
  if (works_) {
    return;
  }
  works_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
  thread_ = std::thread([this] { Run(); });
}

void CanaryRuns::Run() {
  MutexLock lock(mutex_);
  while (!queue_.empty()) {
    const EntryPtr entry = queue_.front();
    queue_.pop_front();
    lock.Unlock();
    // Of an entry these two stay the same.
    Found found = FindOut(entry->question, entry->key);
    lock.Lock();
    entry->found = std::move(found);
    entry->runs = false;
    changed_.notify_all();
  }
  works_ = false;
}

Found CanaryRuns::FindOut(const KvmQuestion& question, const std::string& key) {
  if (auto kept = ReadFound(keep_dir_, key); kept && IsBelieved(*kept)) {
    return *std::move(kept);
  }
  Found shown{.what = choose_(question), .at = clock_()};
  // One that was killed with the engine has shown nothing.
  if (!has_left()) {
    KeepFound(keep_dir_, key, shown);
  }
  return shown;
}

Status CanaryRuns::Begin(const KvmQuestion& question) {
  const MutexLock lock(mutex_);
  const auto entry = EntryOf(question);
  return entry ? Status() : std::unexpected(entry.error());
}

Result<Acceleration> CanaryRuns::Await(const KvmQuestion& question, Deadline deadline) {
  MutexLock lock(mutex_);
  GANTRY_TRY(const EntryPtr entry, EntryOf(question));
  while (!entry->found && !left_) {
    if (changed_.wait_until(lock.native(), deadline) == std::cv_status::timeout && !entry->found) {
      return Fail(Code::kDeadlineExceeded, "find out whether KVM works: the canary still runs");
    }
  }
  const std::optional<Found> found = entry->found;
  if (left_ || !found) {
    return std::unexpected(Leaving());
  }
  if (!entry->runs && !IsBelieved(*found)) {
    Enqueue(entry);
  }
  return found->what;
}

Acceleration LookAtKvm(const std::string& keep_dir, const KvmQuestion& question,
                       const CanaryRuns::Choose& choose) {
  if (const auto kept = ReadFound(keep_dir, KvmKeyOf(question))) {
    return kept->what;
  }
  KvmQuestion tiny = question;
  tiny.qemu.clear();
  return choose(tiny);
}

Result<Accelerator> Decide(const VmmOptions& options, const Acceleration& found) {
  if (options.accelerator == AcceleratorChoice::kTcg) {
    return Accelerator::kTcg;
  }
  if (found.accelerator == Accelerator::kKvm) {
    return Accelerator::kKvm;
  }
  if (options.accelerator == AcceleratorChoice::kKvm || options.vmm != Vmm::kQemu) {
    return Fail(Code::kFailedPrecondition, "choose an accelerator for {}: {}: mend it, or use {}",
                VmmName(options.vmm), found.words,
                options.vmm == Vmm::kQemu ? "the option 'accelerator: auto'"
                                          : "the options 'vmm: qemu' and 'accelerator: auto'");
  }
  return Accelerator::kTcg;
}

}  // namespace gantry::vmm
