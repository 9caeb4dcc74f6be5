// SPDX-License-Identifier: Apache-2.0
//
// One compiler for several tenants, and one compile for several processes.
#include <chrono>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

/// A tenant with many modules, and one that comes after them with another.
TEST_F(CacheTest, SharesTheCompilerAmongTenants) {
  Held held(context_);
  const Asker greedy{"greedy", "pod"};
  const Asker modest{"modest", "pod"};
  constexpr std::chrono::minutes kLong{1};
  auto first = std::async(std::launch::async, [&] { return Get("g0", kLong, greedy); });
  held.Wait();
  for (const char* module : {"g1", "g2", "g3"}) {
    EXPECT_EQ(Get(module, std::chrono::milliseconds(1), greedy).error().code,
              Code::kDeadlineExceeded);
  }
  EXPECT_EQ(Get("m", std::chrono::milliseconds(1), modest).error().code, Code::kDeadlineExceeded);
  // The same module as one at the end of the other's.
  EXPECT_EQ(Get("g3", std::chrono::milliseconds(1), modest).error().code, Code::kDeadlineExceeded);
  held.LetGo();
  for (const char* module : {"g1", "g2", "g3", "m"}) {
    const auto artifact = Get(module, kLong, greedy);
    ASSERT_TRUE(artifact) << artifact.error().message;
    EXPECT_EQ(ContentOf(artifact->file), MadeOf(module));
  }
  EXPECT_TRUE(first.get());
  EXPECT_EQ(Compiles(), 5U);
  EXPECT_EQ(held.order.at(1), "g3") << "the first that the other one waits for";
}

TEST_F(CacheTest, HasAModuleOfWhoHasMostGiveWay) {
  options_.max_waiting = 2;
  Held held(context_);
  const Asker greedy{"greedy", "pod"};
  constexpr std::chrono::minutes kLong{1};
  auto first = std::async(std::launch::async, [&] { return Get("g0", kLong, greedy); });
  held.Wait();
  for (const char* module : {"g1", "g2"}) {
    EXPECT_EQ(Get(module, std::chrono::milliseconds(1), greedy).error().code,
              Code::kDeadlineExceeded);
  }
  // Whether it comes before the other tenant or after him.
  auto last = std::async(std::launch::async, [&] { return Get("g2", kLong, greedy); });
  EXPECT_EQ(Get("m", std::chrono::milliseconds(1), {"modest", "pod"}).error().code,
            Code::kDeadlineExceeded);
  const auto gone = last.get();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kResourceExhausted) << gone.error().message;
  EXPECT_EQ(Count("cache_waiting"), 2U);
  held.LetGo();
  EXPECT_TRUE(first.get());
  EXPECT_EQ(Content("m"), MadeOf("m"));
  EXPECT_EQ(Content("g2"), MadeOf("g2")) << "it was not the module's fault";
}

/// Another process on the directory: an engine beside this one, or `gantryctl wasm compile`.
TEST_F(CacheTest, WaitsForTheCompileOfAnotherProcess) {
  cache();
  HookedContext other_context;
  Held held(other_context);
  Artifacts other(other_context, ProgramAt(program_), options_);
  auto elsewhere = std::async(std::launch::async, [&] {
    return other.Get(ModuleOf("module"), {"default", "tool"}, std::chrono::minutes(1));
  });
  held.Wait();
  auto waits = std::async(std::launch::async, [&] { return Content("module"); });
  EXPECT_EQ(Content("another"), MadeOf("another")) << "others do not wait for it";
  EXPECT_EQ(Get("module", std::chrono::milliseconds(1)).error().code, Code::kDeadlineExceeded);
  held.LetGo();
  EXPECT_TRUE(elsewhere.get());
  EXPECT_EQ(waits.get(), MadeOf("module"));
  EXPECT_EQ(Compiles(), 1U) << "that of the other module";
}

TEST_F(CacheTest, CompilesWhatAProcessThatIsStuckWasToCompile) {
  const auto lock = ArtifactStore(options_.directory, 0)
                        .Lock({.module = Sha256Of("module"), .compiler = Sha256Of("fake-one")});
  ASSERT_TRUE(lock) << lock.error().message;
  ASSERT_EQ(Content("first"), MadeOf("first"));
  EXPECT_EQ(Get("module", std::chrono::milliseconds(1)).error().code, Code::kDeadlineExceeded);
  Restart();
  options_.elsewhere = std::chrono::milliseconds(1);
  EXPECT_EQ(Content("module"), MadeOf("module"));
}

}  // namespace
}  // namespace gantry::wasm
