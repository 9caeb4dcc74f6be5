// SPDX-License-Identifier: Apache-2.0
#include "core/keeper_client/keeper_link.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "core/link/messages.h"
#include "tests/unit/keeper_client/engine_test.h"

namespace gantry::keeper_client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using KeeperLinkTest = EngineTest;

UniqueFd Null() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

TEST_F(KeeperLinkTest, TellsTheSnapshotInItsOrder) {
  keeper_.Announce("c1", "/b/c1");
  keeper_.stored["x"] = Null();
  keeper_.named["n"] = {5, 6};
  keeper_.End({7, 8}, 0);
  Connect();
  EXPECT_THAT(seen_, ElementsAre("added c1", "stored x", "spawned n", "exit 7", "snapshot end"));
}

TEST_F(KeeperLinkTest, TellsWhatComesLater) {
  keeper_.Announce("c1", "/b/c1");
  link::Request request;
  request.connection = 3;
  request.payload = "p";
  keeper_.Tell(request);
  keeper_.Tell(link::ConnectionClosed{3});
  keeper_.AskToDelete(9, 1);
  keeper_.RemoveInstance(1);
  ASSERT_TRUE(Until([this] { return Saw("removed 1"); }));
  EXPECT_THAT(seen_, ElementsAre("snapshot end", "added c1", "request p", "closed 3", "delete 1",
                                 "removed 1"));
}

TEST_F(KeeperLinkTest, SaysWhatAHangIs) {
  EXPECT_EQ(keeper_.hello.answers_within_ms, 7000U);
  EXPECT_TRUE(keeper_.hello.keep_hanging);
}

TEST_F(KeeperLinkTest, AnswersAPing) {
  keeper_.Tell(link::Ping{1});
  keeper_.Tell(link::Ping{2});
  ASSERT_TRUE(Until([this] { return keeper_.pongs.size() == 2; }));
  EXPECT_THAT(keeper_.pongs, ElementsAre(1U, 2U));
  EXPECT_TRUE(Saw("pinged"));
}

TEST_F(KeeperLinkTest, SpawnSaysAllThatWasAsked) {
  SpawnRequest request = Request("/bin/x", "tag");
  request.argv.push_back("-v");
  request.env = {"A=b"};
  request.cwd = "/tmp";
  request.fds.emplace_back(Null(), 1);
  request.namespaces.emplace_back(Null(), CLONE_NEWNET);
  request.rlimits.emplace_back(RLIMIT_NOFILE, rlimit{10, 20});
  request.oom_score_adj = -5;
  const auto spawned = Await(link_->Spawn(std::move(request), "unix:///s/1"));
  ASSERT_TRUE(spawned) << spawned.error().message;
  ASSERT_EQ(keeper_.spawns.size(), 1U);
  const link::Spawn& asked = keeper_.spawns[0];
  EXPECT_EQ(asked.path, "/bin/x");
  EXPECT_THAT(asked.argv, ElementsAre("/bin/x", "-v"));
  EXPECT_THAT(asked.env, ElementsAre("A=b"));
  EXPECT_EQ(asked.cwd, "/tmp");
  EXPECT_EQ(asked.name, "tag");
  EXPECT_EQ(asked.group, "unix:///s/1");
  EXPECT_TRUE(asked.new_session);
  EXPECT_THAT(asked.fd_targets, ElementsAre(1, -1));
  ASSERT_EQ(asked.join.size(), 1U);
  EXPECT_EQ(asked.join[0].fd_index, 1U);
  EXPECT_EQ(asked.join[0].kind, static_cast<uint32_t>(CLONE_NEWNET));
  ASSERT_EQ(asked.rlimits.size(), 1U);
  EXPECT_EQ(asked.rlimits[0].hard, 20U);
  EXPECT_EQ(asked.oom_score_adj, -5);
}

TEST_F(KeeperLinkTest, SpawnSaysWhichNamespacesAndTerminalItGets) {
  SpawnRequest request = Request("/bin/x");
  request.fds.emplace_back(Null(), 4);
  request.fds.emplace_back(Null(), 5);
  request.controlling_terminal = 5;
  request.new_namespaces = CLONE_NEWUSER | CLONE_NEWPID;
  request.uid_map = {{.host_id = 100000, .container_id = 0, .length = 65536}};
  request.gid_map = {{.host_id = 200000, .container_id = 1, .length = 2}};
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  const link::Spawn& asked = keeper_.spawns.at(0);
  EXPECT_EQ(asked.controlling_terminal, 1U);
  EXPECT_EQ(asked.new_namespaces, static_cast<uint32_t>(CLONE_NEWUSER | CLONE_NEWPID));
  ASSERT_EQ(asked.uid_map.size(), 1U);
  EXPECT_EQ(asked.uid_map[0].inside, 0U);
  EXPECT_EQ(asked.uid_map[0].outside, 100000U);
  EXPECT_EQ(asked.uid_map[0].length, 65536U);
  ASSERT_EQ(asked.gid_map.size(), 1U);
  EXPECT_EQ(asked.gid_map[0].inside, 1U);
}

TEST_F(KeeperLinkTest, SpawnSaysWhatConfinesIt) {
  SpawnRequest request = Request("/bin/x");
  request.no_new_privs = true;
  request.capabilities = 0;
  request.empty_root = true;
  request.root_paths = {{.path = "/usr"}, {.path = "/run/x", .writable = true}};
  request.seccomp = {{.code = 6, .jt = 0, .jf = 0, .k = 0x7fff0000}};
  request.new_namespaces = CLONE_NEWNS;
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  const link::Spawn& asked = keeper_.spawns.at(0);
  EXPECT_TRUE(asked.no_new_privs);
  EXPECT_EQ(asked.capabilities, 0U);
  EXPECT_TRUE(asked.empty_root);
  ASSERT_EQ(asked.root_paths.size(), 2U);
  EXPECT_EQ(asked.root_paths[0].path, "/usr");
  EXPECT_FALSE(asked.root_paths[0].writable);
  EXPECT_TRUE(asked.root_paths[1].writable);
  EXPECT_EQ(asked.seccomp, std::string("\6\0\0\0\0\0\xff\x7f", 8));
  EXPECT_EQ(asked.propagation, static_cast<uint32_t>(MS_PRIVATE)) << "unless asked otherwise";
}

TEST_F(KeeperLinkTest, SpawnSaysWhatIsIgnored) {
  SpawnRequest request = Request("/bin/x");
  request.ignore_sigpipe = true;
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  ASSERT_TRUE(Await(link_->Spawn(Request("/bin/x"))));
  EXPECT_TRUE(keeper_.spawns.at(0).ignore_sigpipe);
  EXPECT_FALSE(keeper_.spawns.at(1).ignore_sigpipe);
}

TEST_F(KeeperLinkTest, SpawnLeavesMountsThatAreNotItsOwn) {
  ASSERT_TRUE(Await(link_->Spawn(Request("/bin/x"))));
  SpawnRequest request = Request("/bin/x");
  request.new_namespaces = CLONE_NEWNS;
  request.mounts = MountPropagation::kUnchanged;
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  request = Request("/bin/x");
  request.new_namespaces = CLONE_NEWNS;
  request.mounts = MountPropagation::kSlave;
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  EXPECT_EQ(keeper_.spawns.at(0).propagation, 0U);
  EXPECT_EQ(keeper_.spawns.at(1).propagation, 0U);
  EXPECT_EQ(keeper_.spawns.at(2).propagation, static_cast<uint32_t>(MS_SLAVE));
}

TEST_F(KeeperLinkTest, SpawnIsNotAskedOfAKeeperThatWouldNotConfineIt) {
  keeper_.of_before = true;
  Connect();
  SpawnRequest request = Request("/bin/x");
  request.empty_root = true;
  const auto spawned = Await(link_->Spawn(std::move(request)));
  ASSERT_FALSE(spawned);
  EXPECT_EQ(spawned.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(spawned.error().message, HasSubstr("gantryctl upgrade --keeper"));
  EXPECT_TRUE(keeper_.spawns.empty());
  EXPECT_TRUE(Await(link_->Spawn(Request("/bin/x"))));
}

TEST_F(KeeperLinkTest, SpawnIsNotAskedOfAKeeperThatWouldLeaveARootEmpty) {
  keeper_.leaves_roots_empty = true;
  Connect();
  SpawnRequest request = Request("/bin/x");
  request.empty_root = true;
  ASSERT_TRUE(Await(link_->Spawn(std::move(request))));
  request = Request("/bin/x");
  request.empty_root = true;
  request.root_paths = {{.path = "/usr"}};
  EXPECT_EQ(Await(link_->Spawn(std::move(request))).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(keeper_.spawns.size(), 1U);
}

TEST_F(KeeperLinkTest, SpawnRefusesATerminalThatIsNotPassed) {
  SpawnRequest request = Request("/bin/x");
  request.fds.emplace_back(Null(), 4);
  request.controlling_terminal = 0;
  EXPECT_EQ(Await(link_->Spawn(std::move(request))).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(keeper_.spawns.empty());
}

TEST_F(KeeperLinkTest, SpawnNamesTheProgramThatFailed) {
  keeper_.fail_next[link::Type::kSpawn] = Error{Code::kNotFound, 0, "execve: ENOENT", {}};
  const auto spawned = Await(link_->Spawn(Request("/bin/absent")));
  ASSERT_FALSE(spawned);
  EXPECT_EQ(spawned.error().code, Code::kNotFound);
  EXPECT_EQ(spawned.error().message, "start '/bin/absent': execve: ENOENT");
}

TEST_F(KeeperLinkTest, AnswersFindTheirQuestions) {
  std::optional<Result<uint64_t>> first;
  std::optional<Result<uint64_t>> second;
  keeper_.AddOrphan(11, 111);
  keeper_.AddOrphan(22, 222);
  async::Start(test::Store(link_->Adopt(HostPid{11}, 0), &first));
  async::Start(test::Store(link_->Adopt(HostPid{22}, 0), &second));
  ASSERT_TRUE(Until([&] { return first && second; }));
  EXPECT_EQ(**first, 111U);
  EXPECT_EQ(**second, 222U);
}

TEST_F(KeeperLinkTest, AdoptSaysThatThereIsNoSuchProcess) {
  const auto adopted = Await(link_->Adopt(HostPid{33}, 0));
  EXPECT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, Code::kNotFound);
}

TEST_F(KeeperLinkTest, PutsTakesAndDropsDescriptors) {
  ASSERT_TRUE(Await(link_->Put("a", Null())));
  ASSERT_TRUE(keeper_.stored.contains("a"));
  const auto taken = Await(link_->Take("a"));
  ASSERT_TRUE(taken);
  EXPECT_TRUE(*taken);
  link_->Drop("a");
  EXPECT_TRUE(Until([this] { return !keeper_.stored.contains("a"); }));
  const auto gone = Await(link_->Take("a"));
  EXPECT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST_F(KeeperLinkTest, PutSaysThatTheStoreIsFull) {
  keeper_.fail_next[link::Type::kPut] = Error{Code::kResourceExhausted, 0, "16384 are stored", {}};
  const Status put = Await(link_->Put("a", Null()));
  EXPECT_FALSE(put);
  EXPECT_EQ(put.error().code, Code::kResourceExhausted);
}

TEST_F(KeeperLinkTest, TakeSaysThatTheDescriptorDidNotArrive) {
  keeper_.stored["lost"] = UniqueFd();
  const auto taken = Await(link_->Take("lost"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kResourceExhausted);
}

TEST_F(KeeperLinkTest, TakesSeveralAtOnce) {
  for (const bool of_before : {false, true}) {
    SCOPED_TRACE(of_before);
    keeper_.of_before = of_before;
    for (const char* name : {"a", "b", "c"}) {
      ASSERT_TRUE(Await(link_->Put(name, Null())));
    }
    const auto taken = Await(link_->TakeAll({"a", "none", "c"}));
    ASSERT_EQ(taken.size(), 3U);
    EXPECT_TRUE(taken[0] && *taken[0]);
    EXPECT_EQ(taken[1].error().code, Code::kNotFound);
    EXPECT_TRUE(taken[2] && *taken[2]);
  }
  EXPECT_TRUE(Await(link_->TakeAll({})).empty());
}

TEST_F(KeeperLinkTest, AddMemberGivesTheInstance) {
  keeper_.Announce("pod", "/b/pod");
  const auto added = Await(link_->AddMember(test::FakeKeeper::AddressOf("pod"), "a", "/b/a"));
  ASSERT_TRUE(added);
  EXPECT_EQ(added->announce.id, "a");
  EXPECT_EQ(added->announce.group, "pod");
}

TEST_F(KeeperLinkTest, PassesOnWhatNeedsNoAnswer) {
  link::LastResort last_resort;
  last_resort.init = link::ProcessRef{4, 5};
  link_->Protect(8, last_resort);
  link_->AckExit({6, 7});
  link_->Forget(link::Forget{8, 4, 137, 1});
  link::DeleteDone done;
  done.tag = 3;
  link_->AnswerDelete(done);
  ASSERT_TRUE(Until([this] { return !keeper_.deleted.empty(); }));
  EXPECT_EQ(keeper_.last_resorts[8].init->pid, 4);
  EXPECT_THAT(keeper_.acknowledged, ElementsAre(ProcessId{6, 7}));
  EXPECT_EQ(keeper_.forgotten[0].status, 137U);
  EXPECT_EQ(keeper_.deleted[0].tag, 3U);
}

TEST_F(KeeperLinkTest, ProtectsAnewOnlyWhatHasChanged) {
  link::LastResort last_resort;
  last_resort.cgroup_dirs = {"/cg/a"};
  const auto protect = [this](const link::LastResort& with) {
    link_->Protect(8, with);
    link_->Protect(9, with);
  };
  protect(last_resort);
  ASSERT_TRUE(Until([this] { return keeper_.last_resorts.size() == 2; }));
  keeper_.last_resorts.clear();
  protect(last_resort);
  last_resort.cgroup_dirs = {"/cg/b"};
  link_->Protect(9, last_resort);
  ASSERT_TRUE(Until([this] { return keeper_.last_resorts.contains(9); }));
  EXPECT_FALSE(keeper_.last_resorts.contains(8)) << "the keeper has it";
  EXPECT_THAT(keeper_.last_resorts[9].cgroup_dirs, ElementsAre("/cg/b"));
}

TEST_F(KeeperLinkTest, SaysThatTheKeeperIsGone) {
  keeper_.Hangup();
  EXPECT_TRUE(Until([this] { return Saw("lost"); }));
  const auto spawned = Await(link_->Spawn(Request("/bin/x")));
  ASSERT_FALSE(spawned);
  EXPECT_EQ(spawned.error().code, Code::kUnavailable);
}

TEST_F(KeeperLinkTest, IgnoresAnswersThatNobodyAskedFor) {
  keeper_.Tell(link::PutDone{12345, 0, ""});
  keeper_.Tell(link::Announced{"unix:///x"});
  ASSERT_TRUE(Await(link_->Put("a", Null())));
}

}  // namespace
}  // namespace gantry::keeper_client
