// SPDX-License-Identifier: Apache-2.0
//
// Removes from the cache what no image has any more, once a day, when a container is made: where
// none is, nothing new comes into it either. Beside that the cache is bounded (store.h).
//
// containerd says which modules are layers of images. Which are files of a root file system nobody
// can say who has not read all of them; so what counts there is that they are used.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/wasm/cache/artifacts.h"
#include "plugins/wasm/module/sha256.h"

namespace gantry::wasm {

/// Of what is in no content store. A pod that runs for a month and is made again compiles again.
inline constexpr std::chrono::seconds kUnused = std::chrono::days(30);

/// Thread: any.
class Cleaner {
 public:
  /// What the containerd that listens at `address` has, by digest. Blocks: for seconds.
  using Digests = std::function<Result<std::set<Sha256Digest>>(SandboxContext& context,
                                                               const std::string& address)>;

  /// Owner: `context` and `artifacts` are borrowed and outlive this. `pause`: until then nobody
  /// looks again whether it is time.
  Cleaner(SandboxContext& context, Artifacts& artifacts, Digests digests,
          std::chrono::seconds pause = std::chrono::minutes(10))
      : context_(context), artifacts_(artifacts), digests_(std::move(digests)), pause_(pause) {}

  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;
  /// As `Stop`. Blocks: until what runs has ended.
  ~Cleaner();

  /// A container of the containerd at `address` has got its module; empty: it is not known.
  /// Blocks: never for long; what is to be done a thread does.
  void Note(const std::string& address);

  /// Ends what runs. Again: nothing. Blocks: never.
  void Stop();

 private:
  /// Of one node. With more nothing is removed.
  static constexpr size_t kMostAddresses = 16;

  void Run(const std::set<std::string>& addresses);
  Result<std::set<Sha256Digest>> Ask(const std::set<std::string>& addresses);
  void Keep(std::shared_ptr<HostProcess> process);

  SandboxContext& context_;
  Artifacts& artifacts_;
  const Digests digests_;
  const std::chrono::seconds pause_;
  Mutex mutex_;
  bool stopped_ GANTRY_GUARDED_BY(mutex_) = false;
  bool runs_ GANTRY_GUARDED_BY(mutex_) = false;
  std::set<std::string> addresses_ GANTRY_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point look_again_ GANTRY_GUARDED_BY(mutex_);
  std::shared_ptr<HostProcess> process_ GANTRY_GUARDED_BY(mutex_);
  std::thread thread_ GANTRY_GUARDED_BY(mutex_);

  class Processes;
};

}  // namespace gantry::wasm
