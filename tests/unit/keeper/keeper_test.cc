// SPDX-License-Identifier: Apache-2.0
//
// Announcing, the descriptor store over a restart, and nonsense on every socket.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/toolkit/files/files.h>

#include "core/os/fifo.h"
#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

class KeeperNodeTest : public KeeperTest {
 protected:
  void SetUp() override { StartKeeper(); }

  KeeperOptions MakeOptions() override {
    KeeperOptions options = KeeperTest::MakeOptions();
    options.stored_descriptors = kStored;
    return options;
  }

  static constexpr size_t kStored = 16;

  size_t SocketCount() { return ListDirectory(dir_.path() + "/s", 1000)->size(); }
};

TEST_F(KeeperNodeTest, AGroupSharesASocketUntilItsLastIsGone) {
  const std::string pod = Announce("pod", "pod");
  EXPECT_EQ(Announce("c1", "pod"), pod);
  EXPECT_NE(Announce("other"), pod);
  EXPECT_EQ(SocketCount(), 2U);
  FakeEngine& engine = ReadyEngine();
  for (const link::InstanceAdded& added : engine.All<link::InstanceAdded>()) {
    ASSERT_TRUE(engine.channel->Send(link::Forget{added.number, 1, 0, 5}));
  }
  ASSERT_TRUE(Until([&] { return Status().tombstones == 3; }));
  ASSERT_TRUE(Ask<link::Deleted>(DeleteOf("pod")));
  EXPECT_EQ(SocketCount(), 2U);
  ASSERT_TRUE(Ask<link::Deleted>(DeleteOf("c1")));
  EXPECT_EQ(SocketCount(), 1U);
}

TEST_F(KeeperNodeTest, ALivingInstanceIsNotAnnouncedTwice) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  const link::Spawned init = Shell(engine, "exec sleep 60");
  link::Protect protect;
  protect.instance = engine.All<link::InstanceAdded>().front().number;
  protect.last_resort.init = {init.pid, init.start_time};
  ASSERT_TRUE(engine.channel->Send(protect));
  Status();
  link::Announce again;
  again.id = "c1";
  again.ns = "default";
  again.grpc_address = "/run/containerd.sock";
  EXPECT_EQ(Ask<link::Announced>(again).error().code, Code::kAlreadyExists);
  kill(init.pid, SIGKILL);
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  EXPECT_TRUE(Ask<link::Announced>(again));
  EXPECT_TRUE(Until([&] { return engine.Count<link::InstanceRemoved>() == 1; }));
  EXPECT_EQ(engine.All<link::InstanceAdded>().size(), 2U);
}

TEST_F(KeeperNodeTest, WhatContainerdHasForgottenIsDeletedWhenAnotherComes) {
  const std::string bundles = dir_.path() + "/bundles/";
  std::map<std::string, std::string> addresses;
  for (const std::string id : {"lost", "connected", "kept"}) {
    ASSERT_TRUE(os::MakeDirs(bundles + id, 0700));
    addresses[id] = Announce(id, "", bundles + id);
  }
  Announce("elsewhere", "", dir_.path() + "/unmounted/elsewhere");
  Client client(loop_, addresses["connected"]);
  Settle();
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(RemoveTree(bundles + "lost"));
  ASSERT_TRUE(RemoveTree(bundles + "connected"));
  Announce("next");
  ASSERT_TRUE(Until([&] { return engine.Count<link::DeleteCall>() > 0; }));
  const link::DeleteCall call = engine.All<link::DeleteCall>().front();
  EXPECT_EQ(call.instance, engine.All<link::InstanceAdded>().front().number) << "the lost one";
  link::DeleteDone done;
  done.tag = call.tag;
  ASSERT_TRUE(engine.channel->Send(done));
  EXPECT_TRUE(Until([&] { return engine.Count<link::InstanceRemoved>() == 1; }));
  EXPECT_EQ(engine.Count<link::DeleteCall>(), 1U);
}

TEST_F(KeeperNodeTest, AnAnnounceWithoutAnIdIsRefused) {
  EXPECT_EQ(Ask<link::Announced>(link::Announce{}).error().code, Code::kInvalidArgument);
}

TEST_F(KeeperNodeTest, AnUnknownQuestionIsAnswered) {
  EXPECT_EQ(Ask<link::KeeperStatus>(link::SnapshotEnd{}).error().code, Code::kUnimplemented);
}

TEST_F(KeeperNodeTest, StoredDescriptorsSurviveTheEngine) {
  Announce("c1");
  FakeEngine& first = ReadyEngine();
  std::vector<UniqueFd> fds;
  fds.emplace_back(open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(first.channel->Send(link::Put{1, {"console"}, {}}, std::move(fds)));
  ASSERT_TRUE(first.channel->Send(link::Put{2, {"nothing"}, {}}));
  ASSERT_TRUE(Until([&] { return first.Count<link::PutDone>() == 2; }));
  EXPECT_EQ(first.All<link::PutDone>()[0].code, 0);
  EXPECT_NE(first.All<link::PutDone>()[1].code, 0);
  first.Crash();
  FakeEngine& second = ReadyEngine(1);
  EXPECT_THAT(second.All<link::StoredNames>().front().names, testing::ElementsAre("console"));
  ASSERT_TRUE(second.channel->Send(link::Take{3, "console", {}}));
  ASSERT_TRUE(second.channel->Send(link::Take{4, "nothing", {}}));
  ASSERT_TRUE(Until([&] { return second.Count<link::Taken>() == 2; }));
  EXPECT_EQ(second.All<link::Taken>()[0].code, 0);
  EXPECT_EQ(second.All<link::Taken>()[1].code, static_cast<int>(Code::kNotFound));
  EXPECT_EQ(second.got[second.got.size() - 2].fds.size(), 1U);
  ASSERT_TRUE(second.channel->Send(link::Drop{"console"}));
  EXPECT_TRUE(Until([&] { return Status().descriptors_stored == 0; }));
}

TEST_F(KeeperNodeTest, StoresNoMoreForAPodThanForAContainer) {
  for (const char* id : {"pod", "c1", "c2"}) {
    Announce(id, "pod");
  }
  Announce("other");
  FakeEngine& engine = ReadyEngine();
  std::vector<uint64_t> numbers;
  for (const link::InstanceAdded& added : engine.All<link::InstanceAdded>()) {
    numbers.push_back(added.number);
  }
  ASSERT_EQ(numbers.size(), 4U);
  const auto put = [&](uint64_t number, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t before = engine.Count<link::PutDone>();
      std::vector<UniqueFd> fds;
      fds.emplace_back(open("/dev/null", O_RDWR | O_CLOEXEC));
      const std::string name = std::to_string(number) + "/" + std::to_string(i);
      EXPECT_TRUE(engine.channel->Send(link::Put{1, {name}, {}}, std::move(fds)));
      EXPECT_TRUE(Until([&] { return engine.Count<link::PutDone>() > before; }));
      if (engine.All<link::PutDone>().back().code != 0) {
        return i;
      }
    }
    return count;
  };
  constexpr size_t kOfOne = kStored / 4;
  EXPECT_EQ(put(numbers[0], kOfOne / 2), kOfOne / 2);
  EXPECT_EQ(put(numbers[1], kOfOne / 2), kOfOne / 2);
  EXPECT_EQ(put(numbers[2], kOfOne), 0U) << "its pod has all of its own";
  EXPECT_EQ(engine.All<link::PutDone>().back().code, static_cast<int>(Code::kResourceExhausted));
  EXPECT_EQ(put(numbers[3], kOfOne + 1), kOfOne) << "another one has not";
}

TEST_F(KeeperNodeTest, GivesSeveralStoredDescriptorsAtOnce) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  std::vector<UniqueFd> fds;
  fds.emplace_back(open("/dev/null", O_RDWR | O_CLOEXEC));
  fds.emplace_back(open("/dev/zero", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(engine.channel->Send(link::Put{1, {"null", "zero"}, {}}, std::move(fds)));
  ASSERT_TRUE(engine.channel->Send(link::Take{2, "zero", {"none", "null"}}));
  ASSERT_TRUE(engine.channel->Send(link::Take{3, "none", {"null"}}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Taken>() == 2; }));
  const std::vector<link::Taken> taken = engine.All<link::Taken>();
  EXPECT_THAT(taken[0].names, testing::ElementsAre("zero", "null"));
  EXPECT_EQ(engine.got[engine.got.size() - 2].fds.size(), 2U);
  EXPECT_EQ(taken[1].code, static_cast<int>(Code::kNotFound));
  EXPECT_THAT(taken[1].names, testing::ElementsAre("null"));
}

TEST_F(KeeperNodeTest, AFifosEndIsOpenedByTheKeeper) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  const std::string path = dir_.path() + "/fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto write_end = static_cast<uint32_t>(link::StoreAs::kWriteEnd);
  std::vector<UniqueFd> fds;
  fds.push_back(os::OpenName(path).value());
  ASSERT_TRUE(engine.channel->Send(link::Put{1, {"stdout-w"}, {write_end}}, std::move(fds)));
  fds.clear();
  fds.push_back(os::OpenName("/dev/null").value());
  ASSERT_TRUE(engine.channel->Send(link::Put{2, {"no-fifo"}, {write_end}}, std::move(fds)));
  ASSERT_TRUE(Until([&] { return engine.Count<link::PutDone>() == 2; }));
  EXPECT_EQ(engine.All<link::PutDone>()[0].code, 0);
  EXPECT_EQ(engine.All<link::PutDone>()[1].code, static_cast<int>(Code::kInvalidArgument));
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  char byte;
  // Somebody writes, but nothing yet; after the drop there is nobody.
  EXPECT_EQ(read(reader.get(), &byte, 1), -1);
  engine.Crash();
  FakeEngine& next = ReadyEngine(1);
  EXPECT_EQ(read(reader.get(), &byte, 1), -1);
  ASSERT_TRUE(next.channel->Send(link::Drop{"stdout-w"}));
  EXPECT_TRUE(Until([&] { return read(reader.get(), &byte, 1) == 0; }));
}

TEST_F(KeeperNodeTest, NonsenseOnAnySocketIsSurvived) {
  const std::string address = Announce("c1");
  const std::string control = "unix://" + dir_.path() + "/keeper.sock";
  unsigned seed = 1;
  for (int i = 0; i < 200; ++i) {
    std::string noise(static_cast<size_t>(rand_r(&seed) % 200), '\0');
    for (char& byte : noise) {
      byte = static_cast<char>(rand_r(&seed));
    }
    Client(loop_, address).SendBytes(noise);
    Client(loop_, control).SendBytes(noise);
  }
  Settle();
  EXPECT_EQ(Status().instances.size(), 1U);
}

TEST_F(KeeperNodeTest, NonsenseFromTheEngineIsSurvived) {
  Announce("c1");
  FakeEngine& engine = ReadyEngine();
  unsigned seed = 2;
  for (uint16_t type = 0; type < 70; ++type) {
    std::string noise(static_cast<size_t>(rand_r(&seed) % 40), '\0');
    for (char& byte : noise) {
      byte = static_cast<char>(rand_r(&seed));
    }
    ASSERT_TRUE(engine.channel->Send(static_cast<link::Type>(type), noise));
    ASSERT_TRUE(engine.channel->Send(static_cast<link::Type>(type), ""));
  }
  Settle();
  EXPECT_EQ(Status().engine_starts, 1U);
}

TEST_F(KeeperNodeTest, ReportsWhatItHolds) {
  Announce("c1");
  const link::KeeperStatus status = Status();
  EXPECT_EQ(status.keeper_pid, getpid());
  EXPECT_EQ(status.engine_path, GANTRY_FAKE_ENGINE);
  ASSERT_EQ(status.instances.size(), 1U);
  EXPECT_EQ(status.instances[0].announce.id, "c1");
  EXPECT_EQ(status.sockets, 2U);
}

class KeeperEnd : public KeeperTest {
 protected:
  /// c1 runs, somebody is connected, and SIGTERM has been noted.
  void RunAndAsk() {
    StartKeeper();
    address_ = Announce("c1");
    FakeEngine& engine = ReadyEngine();
    init_ = Shell(engine, "exec sleep 60");
    link::Protect protect;
    protect.instance = engine.All<link::InstanceAdded>().front().number;
    protect.last_resort.init = {init_.pid, init_.start_time};
    ASSERT_TRUE(engine.channel->Send(protect));
    client_.emplace(loop_, address_);
    ASSERT_TRUE(Until([&] { return Status().connections == 1; }));
    ASSERT_EQ(kill(getpid(), SIGTERM), 0);
    EXPECT_EQ(Status().instances.size(), 1U);
  }

  /// Its init ends, and the engine has that on record.
  void EndInit() {
    FakeEngine& engine = *engines.front();
    ASSERT_EQ(kill(init_.pid, SIGKILL), 0);
    ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
    EXPECT_FALSE(Ends());
    ASSERT_TRUE(engine.channel->Send(link::ExitAck{init_.pid, init_.start_time}));
    ASSERT_TRUE(Until([&] { return Status().exits_kept == 0; }));
  }

  /// It is told to end its engine: the first thing that it does when it ends.
  bool Ends() {
    Settle();
    return Status().engine_pid == 0;
  }

  std::string address_;
  link::Spawned init_;
  std::optional<Client> client_;
};

TEST_F(KeeperEnd, ThatWasAskedForComesWhenNothingIsLeftToGuard) {
  RunAndAsk();
  EndInit();
  EXPECT_FALSE(Ends()) << "containerd is there and asks for the task's end";
  bool late = false;
  const async::TimerId limit = loop_.After(30s, [&] {
    late = true;
    loop_.Stop();
  });
  client_.reset();
  loop_.Run();
  loop_.Cancel(limit);
  EXPECT_FALSE(late);
}

TEST_F(KeeperEnd, IsNotWantedByWhoStartsContainers) {
  RunAndAsk();
  Announce("c2");
  FakeEngine& engine = *engines.front();
  ASSERT_TRUE(Until([&] { return engine.Count<link::InstanceAdded>() == 2; }));
  ASSERT_TRUE(
      engine.channel->Send(link::Forget{engine.All<link::InstanceAdded>().back().number, 1, 0, 5}));
  EndInit();
  client_.reset();
  EXPECT_FALSE(Ends());
  EXPECT_EQ(Status().instances.size(), 2U);
}

}  // namespace
}  // namespace gantry::keeper
