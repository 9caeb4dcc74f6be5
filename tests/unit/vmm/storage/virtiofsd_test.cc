// SPDX-License-Identifier: Apache-2.0
//
// How virtiofsd is kept: what it is given, and what is told of its end.
#include "plugins/vmm/storage/virtiofsd.h"

#include <linux/capability.h>
#include <sched.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/vmm/storage/storage_fixture.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::HasSubstr;

class VirtiofsdTest : public StorageFixture {};

// It serves a hostile guest: no network, nobody else's processes, and no right but over files.
TEST_F(VirtiofsdTest, IsGivenNoMoreThanItNeeds) {
  const auto spawn = DescribeVirtiofsd({.options = Request().options, .shared = Shared()},
                                       UserNamespace::kOwn, UniqueFd(), UniqueFd());
  ASSERT_TRUE(spawn) << spawn.error().message;
  EXPECT_EQ(spawn->new_namespaces,
            CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET);
  EXPECT_EQ(spawn->mounts, MountPropagation::kSlave);
  EXPECT_TRUE(spawn->no_new_privs);
  ASSERT_TRUE(spawn->capabilities);
  for (const int right : {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN,
                          CAP_SYS_RAWIO, CAP_SYS_MODULE, CAP_KILL}) {
    EXPECT_EQ(*spawn->capabilities & (uint64_t{1} << static_cast<unsigned>(right)), 0U) << right;
  }
  EXPECT_THAT(spawn->argv, Contains("--sandbox=chroot"));
  EXPECT_THAT(spawn->argv, Contains("--seccomp=kill"));
  EXPECT_THAT(spawn->argv, Contains("--shared-dir=" + Shared()));
}

TEST_F(VirtiofsdTest, StartsWhereTheNodeHasNoUserNamespacesAndSaysSo) {
  context_.on_spawn = [](const SpawnRequest& request) {
    return (request.new_namespaces & CLONE_NEWUSER) != 0 ? Status(FailErrno(ENOSPC, "clone"))
                                                         : Status();
  };
  Start();
  EXPECT_EQ(context_.Alive(), 1U);
  EXPECT_EQ(context_.counts["virtiofsd_without_user_namespace"], 1U);
  EXPECT_TRUE(context_.WaitForLog("user.max_user_namespaces"));
}

TEST_F(VirtiofsdTest, AnotherErrorIsTheCallers) {
  context_.on_spawn = [](const SpawnRequest&) { return Status(FailErrno(ENOMEM, "clone")); };
  const auto made = Storage::Make(context_, Request());
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("start virtiofsd: clone: ENOMEM"));
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
  EXPECT_THAT(context_.StoredNames(), testing::IsEmpty());
}

TEST_F(VirtiofsdTest, IsMissedByNameAndByWhatBringsIt) {
  StorageRequest request = Request();
  request.options.virtiofsd = "/no/such/virtiofsd";
  const auto made = Storage::Make(context_, request);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(made.error().message, HasSubstr("'/no/such/virtiofsd'"));
  EXPECT_THAT(made.error().message, HasSubstr("install the package virtiofsd"));
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty()) << "nothing is left";
}

TEST_F(VirtiofsdTest, OptionsAreChecked) {
  EXPECT_TRUE(CheckStorageOptions({}));
  EXPECT_THAT(CheckStorageOptions({.virtiofsd = "virtiofsd"}).error().message,
              HasSubstr("'virtiofsd'"));
  EXPECT_THAT(CheckStorageOptions({.cache = "often"}).error().message,
              HasSubstr("'virtiofs_cache'"));
}

TEST_F(VirtiofsdTest, ItsEndIsToldWithItsLastWords) {
  WriteProgram("echo no more descriptors >&2; exit 3");
  Start();
  const auto why = WaitForEnd();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->code, Code::kUnavailable);
  EXPECT_THAT(why->message, HasSubstr("no more descriptors"));
}

TEST_F(VirtiofsdTest, AnEndThatCameWhileNoEngineWasThereIsTold) {
  Start();
  const auto process = context_.SpawnedUnder(Virtiofsd::kTag);
  ASSERT_TRUE(process);
  storage_.reset();
  ASSERT_TRUE(process->Signal(SIGKILL));
  ASSERT_TRUE(process->Wait(std::chrono::seconds(60)));
  auto again = RestartEngine();
  ASSERT_TRUE(again) << again.error().message;
  storage_ = std::move(*again);
  EXPECT_TRUE(WaitForEnd());
}

/// Shuts a storage down when it is told of an end, which may come before whoever made it has it.
class ShutsDownWhenTold {
 public:
  std::function<void(Error why)> Told() {
    return [this](const Error&) {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), [this] { return storage_ != nullptr; });
      EXPECT_TRUE(storage_->Shutdown());
      is_down_ = true;
      changed_.notify_all();
    };
  }

  void Await(std::unique_ptr<Storage> made) {
    MutexLock lock(mutex_);
    storage_ = std::move(made);
    changed_.notify_all();
    EXPECT_TRUE(
        changed_.wait_for(lock.native(), std::chrono::seconds(60), [this] { return is_down_; }));
    EXPECT_TRUE(storage_->Shutdown()) << "again";
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Storage> storage_;
  bool is_down_ = false;
};

// Who shuts down because of the end must be able to.
TEST_F(VirtiofsdTest, WhoIsToldMayShutDown) {
  WriteProgram("read line; exit 1");
  ShutsDownWhenTold down;
  StorageRequest request = Request();
  request.ended = down.Told();
  auto made = Storage::Make(context_, request);
  ASSERT_TRUE(made) << made.error().message;
  down.Await(std::move(*made));
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
}

// It has ended before anybody could watch it: that is told no sooner than of another.
TEST_F(VirtiofsdTest, WhoIsToldInARecoveryMayShutDown) {
  Start();
  const auto process = context_.SpawnedUnder(Virtiofsd::kTag);
  ASSERT_TRUE(process);
  storage_.reset();
  ASSERT_TRUE(process->Signal(SIGKILL));
  ASSERT_TRUE(process->Wait(std::chrono::seconds(60)));
  context_.RestartEngine();
  ShutsDownWhenTold down;
  StorageRequest request = Request();
  request.ended = down.Told();
  auto recovered = Storage::Recover(context_, request);
  ASSERT_TRUE(recovered) << recovered.error().message;
  down.Await(std::move(*recovered));
  EXPECT_THAT(*ListDirectory(directory_), testing::IsEmpty());
}

TEST_F(VirtiofsdTest, AnEndByShutdownIsNoNews) {
  bool told = false;
  StorageRequest request = Request();
  request.ended = [&](const Error&) { told = true; };
  auto made = Storage::Make(context_, request);
  ASSERT_TRUE(made);
  const auto process = context_.SpawnedUnder(Virtiofsd::kTag);
  ASSERT_TRUE((*made)->Shutdown());
  EXPECT_TRUE(process->Ended());
  made->reset();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace gantry::vmm
