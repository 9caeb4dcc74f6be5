// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/cleaner.h"

#include <signal.h>

#include <filesystem>
#include <future>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr int64_t kDay = 86'400;

class CleanerTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    for (const char* module : {"layer", "unused", "young"}) {
      ASSERT_EQ(Content(module), MadeOf(module));
    }
    Restart();
    ASSERT_FALSE(*cache().IsToBeCleaned(std::chrono::seconds(kDay))) << "it has just been made";
    now_ += 31 * kDay;
    ASSERT_EQ(Content("young"), MadeOf("young"));
  }

  /// A cleaner from its beginning to its end, in which a container is made.
  void Clean(const std::string& address = "/run/c.sock") {
    Cleaner cleaner(context_, cache(), [this](SandboxContext&, const std::string& asked) {
      asked_.insert(asked);
      return answer_;
    });
    cleaner.Note(address);
    cleaner.Note(address);
  }

  bool IsThere(std::string_view module) const { return fs::exists(PathOf(module)); }

  Result<std::set<Sha256Digest>> answer_ = std::set<Sha256Digest>{Sha256Of("layer")};
  std::multiset<std::string> asked_;
};

TEST_F(CleanerTest, RemovesWhatNoImageHasAndNobodyUses) {
  Clean();
  EXPECT_THAT(asked_, testing::ElementsAre("/run/c.sock"));
  EXPECT_TRUE(IsThere("layer"));
  EXPECT_TRUE(IsThere("young"));
  EXPECT_FALSE(IsThere("unused"));
  EXPECT_THAT(context_.log, Contains(HasSubstr("no image has are removed: 1")));
}

TEST_F(CleanerTest, DoesSoOnceADay) {
  Clean();
  Clean();
  EXPECT_EQ(asked_.size(), 1U);
  now_ += kDay;
  Clean();
  EXPECT_EQ(asked_.size(), 2U);
}

/// What cannot be known is not guessed.
TEST_F(CleanerTest, RemovesNothingWhereContainerdDoesNotAnswer) {
  answer_ = Fail(Code::kUnavailable, "nobody listens");
  Cleaner cleaner(context_, cache(),
                  [this](SandboxContext&, const std::string&) { return answer_; });
  cleaner.Note("/run/c.sock");
  EXPECT_TRUE(context_.WaitForLog("nobody listens"));
  EXPECT_TRUE(IsThere("unused"));
}

TEST_F(CleanerTest, RemovesNothingWhereNoContainerdIsKnown) {
  Clean("");
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_TRUE(IsThere("unused"));
}

TEST_F(CleanerTest, RemovesNothingWhereThereAreMoreThanItKnows) {
  Cleaner cleaner(
      context_, cache(),
      [this](SandboxContext&, const std::string&) {
        ADD_FAILURE() << "nobody is asked";
        return answer_;
      },
      std::chrono::seconds(0));
  ASSERT_TRUE(*cache().IsToBeCleaned(std::chrono::days(1))) << "not again today";
  for (int i = 0; i < 17; ++i) {
    cleaner.Note(Format("/run/{}", i));
  }
  now_ += kDay;
  cleaner.Note("/run/0");
}

/// Whoever is asked does not keep an engine from its end.
TEST_F(CleanerTest, EndsWithTheEngine) {
  std::promise<void> runs;
  const auto ask = [&](SandboxContext& context,
                       const std::string&) -> Result<std::set<Sha256Digest>> {
    SpawnRequest request;
    request.argv = {"/bin/sleep", "10000"};
    GANTRY_TRY(const auto process, context.Spawn(std::move(request)));
    runs.set_value();
    GANTRY_TRY(const WaitStatus ended, process->Wait(std::chrono::minutes(2)));
    return Fail(Code::kInternal, "it has ended with {}", ended.code());
  };
  Cleaner cleaner(context_, cache(), ask);
  cleaner.Note("/run/c.sock");
  runs.get_future().wait();
  const size_t said = context_.log.size();
  cleaner.Stop();
  cleaner.Stop();
  EXPECT_EQ(context_.spawned.back()->Wait(std::chrono::minutes(1))->code(), 128U + SIGKILL);
  EXPECT_EQ(context_.log.size(), said);
  EXPECT_TRUE(IsThere("unused"));
}

}  // namespace
}  // namespace gantry::wasm
