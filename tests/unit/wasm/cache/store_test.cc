// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDay = 86'400;

class ArtifactStoreTest : public testing::Test {
 protected:
  static EntryId IdOf(std::string_view module, std::string_view compiler = "compiler") {
    return {.module = Sha256Of(module), .compiler = Sha256Of(compiler)};
  }

  ArtifactStore Store(uint64_t max_bytes = uint64_t{1} << 30) const {
    return {directory_, max_bytes};
  }

  Status Save(const EntryId& id, std::string_view content, int64_t now = kNow,
              int64_t kept_until = EntryHeader::kForEver) const {
    EntryHeader header{
        .id = id, .made_at = now, .kept_until = kept_until, .length = content.size()};
    return Store().Save(header, *SealedMemfd("content", content, MemfdUse::kRead), now);
  }

  std::string Load(const EntryId& id, int64_t now = kNow) const {
    const auto found = Store().Load(id, now);
    return found ? ContentOf(found->content) : "error: " + found.error().message;
  }

  std::string PathOf(const EntryId& id) const {
    return directory_ + "/v1/" + id.Key().substr(0, 2) + "/" + id.Key();
  }

  bool IsThere(const EntryId& id) const { return fs::exists(PathOf(id)); }

  os::TempDir dir_ = *os::TempDir::Create();
  const std::string directory_ = dir_.path() + "/a/wasm";
};

TEST_F(ArtifactStoreTest, KeepsWhatItWasGiven) {
  EXPECT_EQ(Store().Load(IdOf("m"), kNow).error().code, Code::kNotFound);
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  EXPECT_EQ(Load(IdOf("m")), "artifact");
  struct stat info = {};
  ASSERT_EQ(stat(PathOf(IdOf("m")).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0400U);
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700U);
  ASSERT_TRUE(Save(IdOf("m"), "another"));
  EXPECT_EQ(Load(IdOf("m")), "another");
}

TEST_F(ArtifactStoreTest, HandsOutWhatNobodyChanges) {
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  const auto found = Store().Load(IdOf("m"), kNow);
  ASSERT_TRUE(found);
  EXPECT_NE(fcntl(found->content.get(), F_GET_SEALS) & F_SEAL_WRITE, 0);
}

TEST_F(ArtifactStoreTest, BelievesNothingThatTheHashDoesNotCover) {
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  const std::string good = *ReadFile(PathOf(IdOf("m")), 1 << 16);
  ASSERT_EQ(good.size(), EntryHeader::kSize + 8);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    ASSERT_TRUE(RemoveFile(PathOf(IdOf("m"))));
    ASSERT_TRUE(WriteFile(PathOf(IdOf("m")), bad, 0400));
    EXPECT_EQ(Store().Load(IdOf("m"), kNow).error().code, Code::kDataLoss) << at;
    EXPECT_FALSE(IsThere(IdOf("m"))) << at;
  }
}

TEST_F(ArtifactStoreTest, TakesNoFileThatIsNotRootsAlone) {
  const std::string path = PathOf(IdOf("m"));
  const std::string aside = dir_.path() + "/aside";
  const std::vector<std::pair<const char*, std::function<bool()>>> harms = {
      {"has 145 bytes", [&] { return truncate(path.c_str(), 145) == 0; }},
      {"cut off after 100", [&] { return truncate(path.c_str(), 100) == 0; }},
      {"belongs to user 1", [&] { return chown(path.c_str(), 1, 1) == 0; }},
      {"its mode is 440", [&] { return chmod(path.c_str(), 0440) == 0; }},
      {"a second name", [&] { return link(path.c_str(), aside.c_str()) == 0; }},
      {"is a link",
       [&] {
         return rename(path.c_str(), aside.c_str()) == 0 &&
                symlink(aside.c_str(), path.c_str()) == 0;
       }},
      {"no regular file",
       [&] { return unlink(path.c_str()) == 0 && mkfifo(path.c_str(), 0400) == 0; }},
      {"no regular file",
       [&] { return unlink(path.c_str()) == 0 && mkdir(path.c_str(), 0400) == 0; }},
      {"of another module",
       [&] {
         return Save(IdOf("other"), "artifact") &&
                rename(PathOf(IdOf("other")).c_str(), path.c_str()) == 0;
       }},
      // Of a processor with other features, whose code would not run here.
      {"or compiler",
       [&] {
         return Save(IdOf("m", "another processor"), "artifact") &&
                rename(PathOf(IdOf("m", "another processor")).c_str(), path.c_str()) == 0;
       }},
  };
  for (const auto& [words, harm] : harms) {
    ASSERT_TRUE(Save(IdOf("m"), "artifact"));
    ASSERT_TRUE(harm()) << words;
    const auto found = Store().Load(IdOf("m"), kNow);
    ASSERT_FALSE(found) << words;
    EXPECT_EQ(found.error().code, Code::kDataLoss) << words;
    EXPECT_THAT(found.error().message, HasSubstr(words));
    EXPECT_FALSE(fs::exists(fs::symlink_status(path))) << words;
    unlink(aside.c_str());
  }
}

TEST_F(ArtifactStoreTest, UsesNoDirectoryThatOthersCanWriteTo) {
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  ASSERT_EQ(chmod(directory_.c_str(), 0770), 0);
  EXPECT_EQ(Store().Load(IdOf("m"), kNow).error().code, Code::kFailedPrecondition);
  EXPECT_THAT(Save(IdOf("m"), "x").error().message, HasSubstr("has mode 770; it has to be"));
  fs::rename(directory_, dir_.path() + "/moved");
  fs::create_directory_symlink(dir_.path() + "/moved", directory_);
  EXPECT_EQ(Save(IdOf("m"), "x").error().code, Code::kFailedPrecondition);
}

TEST_F(ArtifactStoreTest, LeavesNothingOnADiskThatIsFull) {
  fs::create_directories(directory_);
  if (mount("none", directory_.c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  const Status saved = Save(IdOf("m"), std::string(1 << 20, 'x'));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().sys_errno, ENOSPC);
  EXPECT_TRUE(Save(IdOf("m"), "small")) << "nothing is left of the large one";
  EXPECT_EQ(Load(IdOf("m")), "small");
  ASSERT_EQ(umount2(directory_.c_str(), MNT_DETACH), 0);
}

TEST_F(ArtifactStoreTest, RemovesWhatWasUsedLongestAgo) {
  const std::string kilobyte(1000, 'x');
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Save(IdOf(std::to_string(i)), kilobyte, kNow - 5 * kDay + i * kDay));
  }
  EXPECT_EQ(Load(IdOf("0")), kilobyte);  // It is used now.
  const auto kept = Store(3500).Trim(IdOf("m").compiler, kNow);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->entries, 3U);
  EXPECT_EQ(kept->bytes, 3 * (1000 + EntryHeader::kSize));
  EXPECT_TRUE(IsThere(IdOf("0")) && IsThere(IdOf("3")) && IsThere(IdOf("4")));
}

TEST_F(ArtifactStoreTest, RemovesWhatNobodyNeeds) {
  ASSERT_TRUE(Save(IdOf("m"), "artifact", kNow - 30 * kDay));
  ASSERT_TRUE(Save(IdOf("m", "old"), "artifact", kNow - 8 * kDay));
  ASSERT_TRUE(Save(IdOf("m", "other"), "artifact", kNow - 6 * kDay));
  ASSERT_TRUE(Save(IdOf("slow"), "text", kNow - 700, kNow - 100));
  const std::string folder = fs::path(PathOf(IdOf("m"))).parent_path();
  std::ofstream(folder + "/.new-abc") << "half";
  std::ofstream(folder + "/rubbish") << "x";
  ASSERT_TRUE(Store().Trim(IdOf("m").compiler, kNow));
  EXPECT_TRUE(IsThere(IdOf("m")));
  EXPECT_FALSE(IsThere(IdOf("m", "old")));
  EXPECT_TRUE(IsThere(IdOf("m", "other")));
  EXPECT_FALSE(IsThere(IdOf("slow")));
  EXPECT_FALSE(fs::exists(folder + "/rubbish"));
  // The file's time is the real one; it is an hour old for somebody who looks much later.
  const int64_t much_later = EntryHeader::kForEver / 2;
  ASSERT_TRUE(Store().Trim(IdOf("m").compiler, much_later));
  EXPECT_FALSE(fs::exists(folder + "/.new-abc"));
}

TEST_F(ArtifactStoreTest, LeavesWhatIsBeingWritten) {
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  const std::string unfinished = fs::path(PathOf(IdOf("m"))).parent_path() / ".new-abc";
  std::ofstream(unfinished) << "half";
  struct stat info = {};
  ASSERT_EQ(stat(unfinished.c_str(), &info), 0);
  ASSERT_TRUE(Store().Trim(IdOf("m").compiler, info.st_mtim.tv_sec + 3600));
  EXPECT_TRUE(fs::exists(unfinished));
  ASSERT_TRUE(Store().Trim(IdOf("m").compiler, info.st_mtim.tv_sec + 3601));
  EXPECT_FALSE(fs::exists(unfinished));
}

TEST_F(ArtifactStoreTest, KeepsAnErrorUntilItsTimeIsOver) {
  ASSERT_TRUE(Save(IdOf("m"), "text", kNow, kNow + 600));
  EXPECT_EQ(Load(IdOf("m"), kNow + 600), "text");
  EXPECT_EQ(Store().Load(IdOf("m"), kNow + 601).error().code, Code::kNotFound);
}

TEST_F(ArtifactStoreTest, IsCleanedOfModulesThatAreNotUsed) {
  ASSERT_TRUE(Save(IdOf("used"), "artifact", kNow - kDay));
  ASSERT_TRUE(Save(IdOf("unused"), "artifact", kNow - kDay));
  ASSERT_TRUE(Save(IdOf("young"), "artifact", kNow));
  const auto kept = Store().Clean({IdOf("used").module}, kNow, kNow);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->entries, 2U);
  EXPECT_FALSE(IsThere(IdOf("unused")));
}

TEST_F(ArtifactStoreTest, HasOneWhoMakesAnEntry) {
  auto lock = Store().Lock(IdOf("m"));
  ASSERT_TRUE(lock) << lock.error().message;
  const auto second = Store().Lock(IdOf("m"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kAborted);
  EXPECT_TRUE(Store().Lock(IdOf("other")));
  lock->reset();
  EXPECT_TRUE(Store().Lock(IdOf("m")));
  ASSERT_TRUE(Store().Trim(IdOf("m").compiler, kNow));
  EXPECT_TRUE(Store().List()->empty()) << "a lock is no entry";
}

/// However it ends.
TEST_F(ArtifactStoreTest, LosesNoEntryToAProcessThatIsKilled) {
  const pid_t other = fork();
  if (other == 0) {
    const auto lock = Store().Lock(IdOf("m"));
    kill(getpid(), lock ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(Store().Lock(IdOf("m")));
}

TEST_F(ArtifactStoreTest, IsListed) {
  EXPECT_TRUE(Store().List()->empty());
  ASSERT_TRUE(Save(IdOf("m"), "artifact"));
  const auto all = Store().List();
  ASSERT_TRUE(all && all->size() == 1U);
  EXPECT_EQ(all->front().key, IdOf("m").Key());
  EXPECT_EQ(all->front().header.id, IdOf("m"));
  EXPECT_EQ(all->front().used_at, kNow);
  EXPECT_EQ(all->front().bytes, EntryHeader::kSize + 8);
}

}  // namespace
}  // namespace gantry::wasm
