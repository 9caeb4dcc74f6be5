// SPDX-License-Identifier: Apache-2.0
//
// For the tests of the cache: modules, files in memory and a compiler that is a stand-in.
#pragma once

#include <atomic>
#include <ctime>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/wasm/cache/artifacts.h"
#include "plugins/wasm/compile/protocol.h"

namespace gantry::wasm {

/// `text` as a module, sealed.
ModuleBytes ModuleOf(std::string_view text);

/// All of a file.
std::string ContentOf(const UniqueFd& file);

/// What the stand-ins make of a module: what they write, and what they say they are.
std::string MadeOf(std::string_view module, std::string_view line = "fake-one");

Compiler::OpenProgram ProgramAt(const std::string& path);

/// A child of the test takes its limits before it executes the compiler, and the thread sanitizer
/// has no memory for itself under one: there compilers of tests have none.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kMemoryIsLimited = false;
#else
inline constexpr bool kMemoryIsLimited = true;
#endif

/// Lends processes, and says when one has been made.
class HookedContext : public FakeSandboxContext {
 public:
  Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) override;

  /// Called with each process, on the thread that has spawned it.
  std::function<void(const std::string& mode, HostProcess& process)> on_spawned;
};

/// Holds compiles until they are let go.
class Held {
 public:
  explicit Held(FakeSandboxContext& context) {
    context.on_spawn = [this](const SpawnRequest& request) -> Status {
      if (request.argv.back() == "compile") {
        for (const auto& [fd, number] : request.fds) {
          if (number == compile::kModule) {
            order.push_back(ContentOf(fd));
          }
        }
        if (!has_begun_.exchange(true)) {
          begun_.set_value();
        }
        gate_.wait();
      }
      return {};
    };
  }

  /// Until the first one is held.
  void Wait() { begun_.get_future().wait(); }

  void LetGo() { go_.set_value(); }

  /// The modules; to be read when none is compiled.
  std::vector<std::string> order;

 private:
  std::atomic<bool> has_begun_ = false;
  std::promise<void> begun_;
  std::promise<void> go_;
  const std::shared_future<void> gate_ = go_.get_future().share();
};

/// A cache in a directory of its own. Its clock stands still.
class CacheTest : public testing::Test {
 protected:
  void SetUp() override;

  /// The one cache; made by the first call.
  Artifacts& cache();

  /// As an engine after this one makes it: all that is left is what is on disk.
  void Restart() { cache_.reset(); }

  Result<Artifact> Get(std::string_view module,
                       std::chrono::milliseconds limit = std::chrono::minutes(1),
                       const Asker& asker = {"default", "alone"}) {
    return cache().Get(ModuleOf(module), asker, limit);
  }

  /// The artifact's bytes, or the error.
  std::string Content(std::string_view module);

  uint64_t Count(std::string_view name);
  /// How many modules compilers were started for.
  size_t Compiles() const;
  /// The file of `module`; of a compiler with that line.
  std::string PathOf(std::string_view module, std::string_view line = "fake-one") const;

  os::TempDir dir_ = *os::TempDir::Create();
  HookedContext context_;
  CacheOptions options_;
  std::string program_;
  /// Of the day: files that are being written have the times of the kernel.
  std::atomic<int64_t> now_ = std::time(nullptr);
  std::unique_ptr<Artifacts> cache_;
};

}  // namespace gantry::wasm
