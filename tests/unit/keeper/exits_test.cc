// SPDX-License-Identifier: Apache-2.0
//
// Exit records, through the link of a fake engine.
#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "tests/unit/keeper/node.h"

namespace gantry::keeper {
namespace {

class ExitsTest : public KeeperTest {
 protected:
  void SetUp() override {
    StartKeeper();
    Announce("c1");
  }
};

TEST_F(ExitsTest, ASpawnedProcessIsReportedWithItsStatus) {
  FakeEngine& engine = ReadyEngine();
  const link::Spawned child = Shell(engine, "exit 7");
  ASSERT_EQ(child.code, 0) << child.message;
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  const link::Exit exit = engine.All<link::Exit>().front();
  EXPECT_EQ(exit.pid, child.pid);
  EXPECT_EQ(exit.start_time, child.start_time);
  EXPECT_EQ(WEXITSTATUS(exit.wait_status), 7);
  EXPECT_GT(exit.exited_at_ns, 0);
}

TEST_F(ExitsTest, AreKeptForTheNextEngineUntilAcknowledged) {
  const link::Spawned child = Shell(ReadyEngine(), "exit 3", "init");
  ASSERT_TRUE(Until([&] { return engines[0]->Count<link::Exit>() == 1; }));
  engines[0]->Crash();
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::Exit>(), 1U);
  ASSERT_EQ(second.Count<link::NamedSpawn>(), 1U);
  EXPECT_EQ(second.All<link::NamedSpawn>().front().name, "init");
  EXPECT_EQ(second.All<link::Exit>().front().pid, child.pid);
  ASSERT_TRUE(second.channel->Send(link::ExitAck{child.pid, child.start_time}));
  ASSERT_TRUE(Until([&] { return Status().exits_kept == 0; }));
  second.Crash();
  FakeEngine& third = ReadyEngine(2);
  EXPECT_EQ(third.Count<link::Exit>(), 0U);
  EXPECT_EQ(third.Count<link::NamedSpawn>(), 0U);
  ASSERT_EQ(third.Count<link::EndedNames>(), 1U) << "it is not what never was";
  const std::vector<link::EndedName> ended = third.All<link::EndedNames>().front().ended;
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].name, "init");
  EXPECT_EQ(ended[0].pid, child.pid);
  EXPECT_EQ(ended[0].start_time, child.start_time);
  EXPECT_EQ(WEXITSTATUS(ended[0].wait_status), 3);
}

TEST_F(ExitsTest, OfAnAdoptedProcessAreFoundByItsName) {
  FakeEngine& engine = ReadyEngine();
  const std::string file = dir_.path() + "/pid";
  Shell(engine, "sleep 60 & echo $! > " + file);
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  link::Adopt adopt;
  adopt.pid = atoi(ReadFile(file, 100).value().c_str());
  adopt.name = "s/zygote/1";
  ASSERT_TRUE(engine.channel->Send(adopt));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 1; }));
  EXPECT_EQ(engine.All<link::Adopted>().back().code, 0);
  adopt.name = std::string(link::kMaxStoredName + 1, 'x');
  ASSERT_TRUE(engine.channel->Send(adopt));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 2; }));
  EXPECT_EQ(engine.All<link::Adopted>().back().code, static_cast<int>(Code::kInvalidArgument));
  engine.Crash();
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::NamedSpawn>(), 1U);
  EXPECT_EQ(second.All<link::NamedSpawn>().front().name, "s/zygote/1");
  EXPECT_EQ(second.All<link::NamedSpawn>().front().pid, adopt.pid);
  ASSERT_EQ(kill(adopt.pid, SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return second.Count<link::Exit>() == 2; })) << "the shell's, and its own";
}

TEST(EndedNames, AreTheNewestOfEachNameAndBounded) {
  EndedNames names;
  const auto add = [&](const std::string& name, int pid) {
    link::Exit exit;
    exit.pid = pid;
    names.Add(name, exit);
  };
  add("first", 1);
  add("second", 2);
  add("second", 3);
  ASSERT_EQ(names.All().size(), 2U);
  EXPECT_EQ(names.All().back().pid, 3);
  for (size_t i = 2; i < EndedNames::kMax + 1; ++i) {
    add("of many " + std::to_string(i), 4);
  }
  EXPECT_EQ(names.All().size(), EndedNames::kMax);
  EXPECT_EQ(names.All().front().name, "second");
  names.Forget("second");
  EXPECT_NE(names.All().front().name, "second");
}

TEST(EndedNames, OfManyOfOneOwnerFlushNoOthers) {
  EndedNames names;
  names.Add("1/sandbox/init", link::Exit{.pid = 1});
  for (size_t i = 0; i < 2 * EndedNames::kMax; ++i) {
    names.Add("2/exec " + std::to_string(i), link::Exit{.pid = 2});
  }
  EXPECT_EQ(names.All().size(), EndedNames::kMax);
  EXPECT_EQ(names.All().front().name, "1/sandbox/init");
}

TEST(EndedNames, AreForgottenBelowAPrefix) {
  EndedNames names;
  for (const char* const name : {"1/sandbox/a", "1/sandbox/b", "1//io/log", "11/sandbox/a"}) {
    names.Add(name, link::Exit{.pid = 1});
  }
  names.ForgetBelow("");
  EXPECT_EQ(names.All().size(), 4U);
  names.ForgetBelow("1/sandbox/");
  ASSERT_EQ(names.All().size(), 2U);
  EXPECT_EQ(names.All().front().name, "1//io/log");
  EXPECT_EQ(names.All().back().name, "11/sandbox/a");
  names.ForgetBelow("1/");
  EXPECT_EQ(names.All().size(), 1U);
}

TEST_F(ExitsTest, OfNamesThatAreForgottenAreToldToNoEngine) {
  FakeEngine& engine = ReadyEngine();
  const link::Spawned child = Shell(engine, "exit 3", "1/sandbox/helper");
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  ASSERT_TRUE(engine.channel->Send(link::ExitAck{child.pid, child.start_time}));
  ASSERT_TRUE(engine.channel->Send(link::ForgetEnded{"1/sandbox/"}));
  ASSERT_TRUE(Until([&] { return Status().exits_kept == 0; }));
  engine.Crash();
  EXPECT_EQ(ReadyEngine(1).Count<link::EndedNames>(), 0U);
}

TEST(Exits, RememberEndedNamesUntilTheNameIsUsedAgain) {
  const auto ignore = [](const link::Exit&) {};
  Exits before(ignore, ignore);
  state::Exits state;
  state.kept = {link::Exit{.pid = 7, .start_time = 1, .wait_status = 9}};
  state.named = {{{7, 1}, "init"}};
  before.Restore(state);
  before.Acknowledge({7, 1});
  Exits exits(ignore, ignore);
  exits.Restore(before.Save());
  ASSERT_EQ(exits.ended_names().All().size(), 1U);
  EXPECT_EQ(exits.ended_names().All().front().wait_status, 9);
  exits.Watch({8, 2}, "init");
  EXPECT_TRUE(exits.ended_names().All().empty());
}

TEST_F(ExitsTest, AreWaitedForOfWhatTheNextEngineIsTold) {
  FakeEngine& engine = ReadyEngine();
  EXPECT_EQ(engine.Count<link::Watched>(), 0U);
  const link::Spawned child = Shell(engine, "sleep 60");
  engine.Crash();
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::Watched>(), 1U);
  const std::vector<link::ProcessRef> watched = second.All<link::Watched>().front().processes;
  ASSERT_EQ(watched.size(), 1U);
  EXPECT_EQ(watched[0].pid, child.pid);
  EXPECT_EQ(watched[0].start_time, child.start_time);
  ASSERT_EQ(kill(child.pid, SIGKILL), 0);
  EXPECT_TRUE(Until([&] { return second.Count<link::Exit>() == 1; }));
}

TEST_F(ExitsTest, ThatHappenWithoutAnEngineAreNotLost) {
  FakeEngine& engine = ReadyEngine();
  const link::Spawned child = Shell(engine, "sleep 60");
  engine.Crash();
  ASSERT_EQ(kill(child.pid, SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return Status().exits_kept == 1; }));
  FakeEngine& second = ReadyEngine(1);
  ASSERT_EQ(second.Count<link::Exit>(), 1U);
  EXPECT_EQ(WTERMSIG(second.All<link::Exit>().front().wait_status), SIGKILL);
}

TEST_F(ExitsTest, OfAnOrphanAreFoundAfterItsDeath) {
  FakeEngine& engine = ReadyEngine();
  const std::string file = dir_.path() + "/pid";
  Shell(engine, "sh -c 'echo $$ > " + file + "; exit 9' & exit 0");
  pid_t orphan = 0;
  ASSERT_TRUE(Until([&] {
    const auto text = ReadFile(file, 100);
    orphan = text ? atoi(text->c_str()) : 0;
    return orphan > 0 && !Identify({orphan});
  }));
  link::Adopt adopt;
  adopt.pid = orphan;
  adopt.tag = 5;
  ASSERT_TRUE(engine.channel->Send(adopt));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 1; }));
  const link::Adopted adopted = engine.All<link::Adopted>().front();
  EXPECT_EQ(adopted.code, 0) << adopted.message;
  EXPECT_EQ(adopted.tag, 5U);
  ASSERT_EQ(engine.Count<link::Exit>(), 2U);
  const link::Exit exit = engine.All<link::Exit>().back();
  EXPECT_EQ(exit.pid, orphan);
  EXPECT_EQ(exit.start_time, adopted.start_time);
  EXPECT_EQ(WEXITSTATUS(exit.wait_status), 9);
}

/// Which of two records of one pid is meant where only the pid is known.
uint64_t NewestOf(uint64_t kept, uint64_t orphan) {
  /// Above what the kernel gives (PID_MAX_LIMIT).
  constexpr int32_t kPid = 1 << 23;
  const auto record = [](uint64_t start_time) {
    link::Exit exit;
    exit.pid = kPid;
    exit.start_time = start_time;
    return exit;
  };
  state::Exits state;
  state.kept = {record(kept)};
  state.orphans = {record(orphan)};
  const auto ignore = [](const link::Exit&) {};
  Exits exits(ignore, ignore);
  exits.Restore(state);
  return exits.Adopt({kPid, 0})->start_time;
}

TEST(Exits, OfAPidThatWasUsedAgainAreTheNewerOnes) {
  EXPECT_EQ(NewestOf(10, 20), 20U);
  EXPECT_EQ(NewestOf(20, 10), 20U);
}

/// Children of one cgroup that end for longer than any test lasts, each with another pid.
class Storm {
 public:
  explicit Storm(std::string cgroups) : cgroups_(std::move(cgroups)) {}

  std::optional<Exits::Ended> Next() {
    if (pid_ == kLast) {
      return std::nullopt;
    }
    Exits::Ended ended;
    ended.process.process = {++pid_, 1};
    ended.cgroups = cgroups_;
    return ended;
  }

 private:
  static constexpr pid_t kLast = 1'000'000;

  std::string cgroups_;
  pid_t pid_ = 1000;
};

TEST(Orphans, ThatNeverEndAreCollectedSomeInATurn) {
  Storm storm("0::/storm");
  size_t reaped = 0;
  Exits exits([](const link::Exit&) {}, [&](const link::Exit&) { ++reaped; },
              [&] { return storm.Next(); });
  EXPECT_TRUE(exits.ReapSome());
  EXPECT_EQ(reaped, Exits::kPerTurn);
  EXPECT_TRUE(exits.ReapSome());
  EXPECT_EQ(reaped, 2 * Exits::kPerTurn);
}

TEST(Orphans, OfOneCgroupDoNotFlushTheEndOfAnothersInit) {
  Storm storm("0::/storm");
  std::vector<Exits::Ended> others(2);
  others[0].process = {{7, 1}, 3 << 8, {}};
  others[0].cgroups = "0::/just-made";
  others[1].process = {{8, 1}, 0, {}};
  size_t turns = 0;
  Exits exits([](const link::Exit&) {}, [](const link::Exit&) {},
              [&] {
                ++turns;
                return turns <= others.size() ? std::optional(others[turns - 1]) : storm.Next();
              });
  while (turns < 4 * Orphans::kMax) {
    exits.ReapSome();
  }
  const auto kept = exits.Find({7, 1});
  ASSERT_TRUE(kept);
  EXPECT_EQ(WEXITSTATUS(kept->wait_status), 3);
  EXPECT_TRUE(exits.Adopt({8, 1}));
  EXPECT_EQ(exits.Save().orphans.size(), Orphans::kMax - 1);
  EXPECT_FALSE(exits.Find({1001, 1})) << "the oldest of the storm";
}

TEST(Orphans, AreNotWhatIsWatched) {
  std::vector<link::Exit> told;
  Storm storm("");
  Exits exits([&](const link::Exit& exit) { told.push_back(exit); }, [](const link::Exit&) {},
              [&] { return storm.Next(); });
  exits.Watch({1001, 1}, "init");
  while (exits.Save().orphans.size() < Orphans::kMax) {
    exits.ReapSome();
  }
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].pid, 1001);
  EXPECT_EQ(exits.Kept().size(), 1U);
}

TEST_F(ExitsTest, OfMoreThanATurnCollectsAreCollected) {
  ReadyEngine();
  constexpr size_t kChildren = 3 * Exits::kPerTurn;
  std::vector<pid_t> children;
  for (size_t i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(0);
    }
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  // All wait when the keeper first looks.
  for (const pid_t child : children) {
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  }
  EXPECT_TRUE(Until([&] {
    return std::ranges::none_of(children, [](pid_t child) { return kill(child, 0) == 0; });
  }));
}

TEST_F(ExitsTest, OfAStrangerCannotBeAdopted) {
  FakeEngine& engine = ReadyEngine();
  ASSERT_TRUE(engine.channel->Send(link::Adopt{getpid(), 1, 6, ""}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 1; }));
  EXPECT_EQ(engine.All<link::Adopted>().front().code, static_cast<int>(Code::kNotFound));
}

TEST_F(ExitsTest, OfAStrangerCannotBeAdoptedByItsPid) {
  FakeEngine& engine = ReadyEngine();
  // It runs, and is no child of the keeper's, under whatever name.
  ASSERT_TRUE(engine.channel->Send(link::Adopt{getpid(), 0, 6, "s/mine"}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 1; }));
  EXPECT_EQ(engine.All<link::Adopted>().front().code, static_cast<int>(Code::kNotFound));
  // This one is.
  const link::Spawned child = Shell(engine, "sleep 60");
  ASSERT_TRUE(engine.channel->Send(link::Adopt{child.pid, 0, 7, ""}));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Adopted>() == 2; }));
  EXPECT_EQ(engine.All<link::Adopted>().back().start_time, child.start_time);
  engine.Crash();
  EXPECT_EQ(ReadyEngine(1).Count<link::NamedSpawn>(), 0U);
}

TEST_F(ExitsTest, AMissingProgramIsAnErrorAndNoProcess) {
  FakeEngine& engine = ReadyEngine();
  link::Spawn spawn;
  spawn.path = "/no/such/program";
  spawn.argv = {"x"};
  ASSERT_TRUE(engine.channel->Send(spawn));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Spawned>() == 1; }));
  const link::Spawned answer = engine.All<link::Spawned>().front();
  EXPECT_EQ(answer.sys_errno, ENOENT);
  EXPECT_NE(answer.code, 0);
  EXPECT_EQ(Status().processes_watched, 0U);
}

TEST_F(ExitsTest, ComeAfterTheAnswerToTheSpawn) {
  FakeEngine& engine = ReadyEngine();
  for (uint64_t tag = 1; tag <= 100; ++tag) {
    link::Spawn spawn;
    spawn.tag = tag;
    spawn.path = tag % 2 == 0 ? "/bin/true" : "/no/such/program";
    spawn.argv = {"x"};
    ASSERT_TRUE(engine.channel->Send(spawn));
  }
  ASSERT_TRUE(Until(
      [&] { return engine.Count<link::Exit>() == 50 && engine.Count<link::Spawned>() == 100; }));
  std::set<int32_t> running;
  for (const link::Message& message : engine.got) {
    if (message.type == link::Type::kSpawned) {
      running.insert(message.As<link::Spawned>()->pid);
    } else if (message.type == link::Type::kExit) {
      EXPECT_EQ(running.count(message.As<link::Exit>()->pid), 1U);
    }
  }
  EXPECT_EQ(Status().processes_watched, 0U);
}

TEST_F(ExitsTest, SpawnGivesThePidfdAndTheDescriptors) {
  FakeEngine& engine = ReadyEngine();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  link::Spawn spawn;
  spawn.path = "/bin/sh";
  spawn.argv = {"sh", "-c", "echo hello"};
  spawn.fd_targets = {1};
  std::vector<UniqueFd> fds;
  fds.emplace_back(ends[1]);
  ASSERT_TRUE(engine.channel->Send(spawn, std::move(fds)));
  ASSERT_TRUE(Until([&] { return engine.Count<link::Exit>() == 1; }));
  char text[16] = {};
  EXPECT_EQ(read(read_end.get(), text, sizeof(text)), 6);
  EXPECT_STREQ(text, "hello\n");
  for (const link::Message& message : engine.got) {
    EXPECT_EQ(message.fds.size(), message.type == link::Type::kSpawned ? 1U : 0U);
  }
}

}  // namespace
}  // namespace gantry::keeper
