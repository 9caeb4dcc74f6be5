// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/cleaner.h"

#include <signal.h>

#include <system_error>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/context/forwarding_context.h>

namespace gantry::wasm {
namespace {

constexpr std::chrono::seconds kEvery = std::chrono::days(1);

}  // namespace

/// So that `Stop` ends them.
class Cleaner::Processes final : public ForwardingSandboxContext {
 public:
  Processes(SandboxContext& host, Cleaner& cleaner)
      : ForwardingSandboxContext(host), cleaner_(cleaner) {}

  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override {
    GANTRY_TRY(auto process, host().Spawn(std::move(request)));
    cleaner_.Keep(process);
    return process;
  }

 private:
  Cleaner& cleaner_;
};

Cleaner::~Cleaner() {
  Stop();
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) {
    thread.join();
  }
}

void Cleaner::Note(const std::string& address) {
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  if (!address.empty() && addresses_.size() <= kMostAddresses) {
    addresses_.insert(address);
  }
  if (stopped_ || runs_ || now < look_again_ || addresses_.empty() ||
      addresses_.size() > kMostAddresses) {
    return;
  }
  look_again_ = now + pause_;
  const auto due = artifacts_.IsToBeCleaned(kEvery);
  if (!due || !*due) {
    // Where the directory cannot be used there is nothing to be cleaned.
    return;
  }
  if (thread_.joinable()) {
    thread_.join();
  }
  try {
    thread_ = std::thread([this, addresses = addresses_] { Run(addresses); });
    runs_ = true;
  } catch (const std::system_error& error) {
    context_.Log(LogLevel::kWarning,
                 Format("clean the cache of compiled modules: {}; another day", error.what()));
  }
}

void Cleaner::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  if (process_) {
    IgnoreError(process_->Signal(SIGKILL), "it has ended");
  }
}

void Cleaner::Keep(std::shared_ptr<HostProcess> process) {
  const MutexLock lock(mutex_);
  process_ = std::move(process);
  if (stopped_) {
    IgnoreError(process_->Signal(SIGKILL), "it has ended");
  }
}

Result<std::set<Sha256Digest>> Cleaner::Ask(const std::set<std::string>& addresses) {
  Processes processes(context_, *this);
  std::set<Sha256Digest> all;
  for (const std::string& address : addresses) {
    GANTRY_TRY(std::set<Sha256Digest> some, digests_(processes, address));
    all.merge(some);
  }
  return all;
}

void Cleaner::Run(const std::set<std::string>& addresses) {
  const auto used = Ask(addresses);
  const auto kept = used ? artifacts_.CleanUnused(*used, kUnused)
                         : Result<ArtifactStore::Kept>(std::unexpected(used.error()));
  bool stopped = false;
  {
    const MutexLock lock(mutex_);
    process_.reset();
    runs_ = false;
    stopped = stopped_;
  }
  if (!kept && !stopped) {
    context_.Log(LogLevel::kInfo,
                 Format("the cache of compiled modules is not cleaned of what no image has: {}",
                        kept.error().message));
  } else if (kept && kept->removed > 0) {
    context_.Log(LogLevel::kInfo,
                 Format("compiled modules that no image has are removed: {}", kept->removed));
  }
}

}  // namespace gantry::wasm
