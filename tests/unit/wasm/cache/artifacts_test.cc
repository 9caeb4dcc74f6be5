// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

/// The file behind a descriptor.
std::pair<dev_t, ino_t> FileOf(const Artifact& artifact) {
  struct stat info = {};
  fstat(artifact.file.get(), &info);
  return {info.st_dev, info.st_ino};
}

TEST_F(CacheTest, CompilesAModuleOnce) {
  const auto first = Get("proxy");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->kind, Kind::kProxy);
  EXPECT_EQ(ContentOf(first->file), MadeOf("proxy"));
  const auto second = Get("proxy");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, Kind::kProxy);
  EXPECT_EQ(FileOf(*first), FileOf(*second)) << "they share their pages";
  EXPECT_EQ(Compiles(), 1U);
  EXPECT_EQ(Count("cache_memory_hits"), 1U);
}

TEST_F(CacheTest, GivesEachADescriptorOfItsOwn) {
  const auto first = Get("module");
  const auto second = Get("module");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(lseek(first->file.get(), 3, SEEK_SET), 3);
  EXPECT_EQ(lseek(second->file.get(), 0, SEEK_CUR), 0);
  EXPECT_EQ(fcntl(first->file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_NE(fcntl(first->file.get(), F_GET_SEALS) & F_SEAL_WRITE, 0);
}

TEST_F(CacheTest, OutlivesTheEngine) {
  ASSERT_EQ(Content("command"), MadeOf("command"));
  Restart();
  const auto again = Get("command");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->kind, Kind::kCommand);
  EXPECT_EQ(ContentOf(again->file), MadeOf("command"));
  EXPECT_EQ(Compiles(), 1U);
  EXPECT_EQ(Count("cache_disk_hits"), 1U);
}

TEST_F(CacheTest, IsOfOneCompiler) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  Restart();
  program_ = GANTRY_FAKE_COMPILE_TWO;
  EXPECT_EQ(Content("module"), MadeOf("module", "fake-two"));
  EXPECT_TRUE(fs::exists(PathOf("module", "fake-one"))) << "an engine of before may come back";
  EXPECT_EQ(Compiles(), 2U);
}

TEST_F(CacheTest, CompilesAgainWhatWasTamperedWith) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  Restart();
  {
    const UniqueFd file(open(PathOf("module").c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(pwrite(file.get(), "EVIL", 4, EntryHeader::kSize), 4);
  }
  EXPECT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(Compiles(), 2U);
  EXPECT_EQ(Count("cache_damaged"), 1U);
  ASSERT_EQ(context_.log.size(), 1U);
  EXPECT_THAT(context_.log[0], HasSubstr("its content is not what was written; it is compiled"));
  Restart();
  EXPECT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(Compiles(), 2U) << "what was compiled again is kept";
}

/// Many tenants, one module.
TEST_F(CacheTest, HasOneCompileForAllWhoAsk) {
  Held held(context_);
  std::vector<std::future<Result<Artifact>>> all;
  all.push_back(std::async(std::launch::async, [&] { return Get("module"); }));
  held.Wait();
  for (int i = 0; i < 7; ++i) {
    all.push_back(std::async(std::launch::async, [&, i] {
      return Get("module", std::chrono::minutes(1), {Format("tenant{}", i), "pod"});
    }));
  }
  held.LetGo();
  std::set<std::pair<dev_t, ino_t>> files;
  for (auto& one : all) {
    const auto artifact = one.get();
    ASSERT_TRUE(artifact) << artifact.error().message;
    files.insert(FileOf(*artifact));
  }
  EXPECT_EQ(files.size(), 1U);
  EXPECT_EQ(Compiles(), 1U);
}

TEST_F(CacheTest, GoesOnWhenACallersTimeIsOver) {
  ASSERT_EQ(Content("first"), MadeOf("first"));
  Held held(context_);
  const auto late = Get("module", std::chrono::milliseconds(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  held.LetGo();
  EXPECT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(Compiles(), 2U);
}

TEST_F(CacheTest, RemembersWhatIsNotValid) {
  const std::string text = Content("invalid");
  EXPECT_THAT(text, HasSubstr("at byte 7"));
  EXPECT_EQ(Content("invalid"), text);
  Restart();
  now_ += 365LL * 24 * 3600;
  const auto again = Get("invalid");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kInvalidArgument);
  EXPECT_EQ("error: " + again.error().message, text);
  EXPECT_EQ(Compiles(), 1U);
}

TEST_F(CacheTest, TriesAgainLaterWhatTookTooMuch) {
  if (!kMemoryIsLimited) {
    GTEST_SKIP() << "the thread sanitizer leaves no room for a limit";
  }
  options_.limits.memory = uint64_t{40} << 20;
  ASSERT_EQ(Get("memory").error().code, Code::kResourceExhausted);
  now_ += 600;
  EXPECT_EQ(Get("memory").error().code, Code::kResourceExhausted);
  Restart();
  EXPECT_EQ(Get("memory").error().code, Code::kResourceExhausted);
  EXPECT_EQ(Compiles(), 1U);
  now_ += 1;
  EXPECT_EQ(Get("memory").error().code, Code::kResourceExhausted);
  EXPECT_EQ(Compiles(), 2U);
}

/// Who made its container again would have the compiler for himself.
TEST_F(CacheTest, RemembersWhatTakesTooLong) {
  options_.limits.time = std::chrono::milliseconds(50);
  const auto slow = Get("silent");
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::kResourceExhausted);
  EXPECT_THAT(slow.error().message, HasSubstr("takes longer than 0.05 s"));
  EXPECT_EQ(Get("silent").error().message, slow.error().message);
  EXPECT_EQ(Compiles(), 1U);
  Restart();
  EXPECT_EQ(Get("silent").error().message, slow.error().message);
  now_ += 601;
  EXPECT_EQ(Get("silent").error().code, Code::kResourceExhausted);
  EXPECT_EQ(Compiles(), 2U);
}

TEST_F(CacheTest, ForgetsThatACompilerWasKilled) {
  context_.on_spawned = [](const std::string& mode, HostProcess& process) {
    if (mode == "compile") {
      IgnoreError(process.Signal(SIGKILL), "it may be done");
    }
  };
  EXPECT_EQ(Get("silent").error().code, Code::kUnavailable);
  EXPECT_FALSE(fs::exists(PathOf("silent")));
  EXPECT_EQ(Get("silent").error().code, Code::kUnavailable);
  EXPECT_EQ(Compiles(), 2U);
}

TEST_F(CacheTest, SaysWhereTheCompilerCannotBeStarted) {
  program_ = dir_.path() + "/absent";
  const auto artifact = Get("module");
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.error().code, Code::kUnavailable);
  EXPECT_THAT(artifact.error().message, HasSubstr("ask the wasm compiler what it is"));
  Restart();
  program_ = GANTRY_FAKE_COMPILE_ONE;
  EXPECT_EQ(Content("module"), MadeOf("module"));
}

TEST_F(CacheTest, IsNotNeededForAStart) {
  std::ofstream(options_.directory) << "no directory";
  EXPECT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(Content("another module"), MadeOf("another module"));
  Restart();  // All has been tried to be kept.
  EXPECT_EQ(Compiles(), 2U);
  EXPECT_THAT(context_.log, testing::Contains(HasSubstr("it is compiled again after a restart")));
  EXPECT_EQ(context_.log.size(), 2U) << "each thing is said once";
}

TEST_F(CacheTest, StartsFromADiskThatIsFullOrCannotBeWritten) {
  fs::create_directory(options_.directory);
  if (mount("none", options_.directory.c_str(), "tmpfs", 0, "size=4k,nr_inodes=3,mode=700") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  EXPECT_EQ(Content("module"), MadeOf("module"));
  Restart();  // Nothing is open there any more.
  ASSERT_EQ(mount("none", options_.directory.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_EQ(Content("another"), MadeOf("another"));
  Restart();
  EXPECT_EQ(umount2(options_.directory.c_str(), MNT_DETACH), 0);
}

TEST_F(CacheTest, QueuesNoMoreThanItMay) {
  options_.max_waiting = 1;
  Held held(context_);
  auto first = std::async(std::launch::async, [&] { return Get("first"); });
  held.Wait();
  auto second = Get("second", std::chrono::milliseconds(1));
  EXPECT_EQ(second.error().code, Code::kDeadlineExceeded);
  const auto third = Get("third");
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::kResourceExhausted);
  EXPECT_THAT(third.error().message, HasSubstr("1 others wait"));
  held.LetGo();
  EXPECT_TRUE(first.get());
  EXPECT_EQ(Content("second"), MadeOf("second"));
  EXPECT_EQ(Content("third"), MadeOf("third")) << "it was not the module's fault";
}

TEST_F(CacheTest, DoesNotWaitForACompilerWhenItHasTheModule) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  Restart();
  Held held(context_);
  auto slow = std::async(std::launch::async, [&] { return Get("slow"); });
  held.Wait();
  EXPECT_EQ(Content("module"), MadeOf("module"));
  held.LetGo();
  EXPECT_TRUE(slow.get());
}

TEST_F(CacheTest, EndsWithTheEngine) {
  std::promise<void> runs;
  context_.on_spawned = [&](const std::string& mode, HostProcess&) {
    if (mode == "compile") {
      runs.set_value();
    }
  };
  auto waits = std::async(std::launch::async, [&] { return Get("silent"); });
  runs.get_future().wait();
  cache().Leave();
  EXPECT_EQ(waits.get().error().code, Code::kUnavailable);
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(CacheTest, SaysOnDiskThatItIsUsed) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  const auto used = [&] {
    struct stat info = {};
    stat(PathOf("module").c_str(), &info);
    return info.st_mtim.tv_sec;
  };
  const int64_t made = now_;
  Restart();
  now_ += 3599;
  ASSERT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(used(), made);
  now_ += 3600;
  ASSERT_EQ(Content("module"), MadeOf("module"));
  EXPECT_EQ(used(), now_);
}

TEST_F(CacheTest, IsListedAndCleaned) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  ASSERT_THAT(Content("invalid"), StartsWith("error"));
  Restart();
  EXPECT_EQ(cache().List()->size(), 2U);
  EXPECT_EQ(cache().Clean({Sha256Of("module")}, now_ + 1)->entries, 1U);
  EXPECT_TRUE(fs::exists(PathOf("module")));
}

}  // namespace
}  // namespace gantry::wasm
