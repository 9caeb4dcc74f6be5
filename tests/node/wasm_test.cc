// SPDX-License-Identifier: Apache-2.0
//
// Guests in scopes that systemd has made, under cgroup v2.
#include <signal.h>

#include <cstdlib>
#include <string_view>

#include <gmock/gmock.h>

#include "tests/node/harness/guests.h"
#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class SystemdWasm : public NodeTest {
 protected:
  void StartTool(const std::string& id, const Words& arguments, const Words& flags = {}) {
    Start(id, Tool(arguments), WithGuests(flags));
  }

  static e2e::Output RunTool(const std::string& id, const Words& arguments,
                             const Words& flags = {}) {
    Words all = WithGuests({"--rm", "--cgroup", "system.slice:gantry:" + id});
    all.insert(all.end(), flags.begin(), flags.end());
    return CtrRun(id, Tool(arguments), all);
  }

  static std::string CgroupOfScope(const std::string& id) { return "/system.slice/" + Scope(id); }

  /// What containerd is told of it.
  static long SpentMicroseconds(const std::string& id) {
    constexpr std::string_view kKey = "\"usage_usec\":";
    std::string out = Ctr({"tasks", "metrics", "--format", "json", id}).out;
    std::erase_if(out, [](char c) { return c == ' ' || c == '\n'; });
    const size_t at = out.find(kKey);
    return at == std::string::npos ? -1 : std::atol(&out[at + kKey.size()]);
  }
};

TEST_F(SystemdWasm, IsAScopeWithTheGuestInIt) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"}));
  EXPECT_EQ(ActiveState(Scope(id)), "active");
  const pid_t guest = FindTask(id).pid;
  EXPECT_EQ(CgroupOf(guest), CgroupOfScope(id));
  const std::string process = "/proc/" + std::to_string(guest);
  EXPECT_THAT(e2e::ReadText(process + "/status"), HasSubstr("Seccomp:\t2"));
  EXPECT_EQ(e2e::ListFolder(process + "/task").size(), 1U);
  End(id);
  EXPECT_TRUE(e2e::Eventually([&] { return ActiveState(Scope(id)) == "inactive"; }));
  EXPECT_TRUE(e2e::ListFolder(CgroupFolder(id)).empty());
}

TEST_F(SystemdWasm, EndsWithTheGuestsCodeAndATrapWith134) {
  EXPECT_EQ(RunTool(Id(), {"exit", "200"}).status, 200);
  const e2e::Output trap = RunTool(Id(), {"trap"});
  EXPECT_EQ(trap.status, 134) << trap.Text();
  EXPECT_THAT(trap.err, HasSubstr("unreachable"));
}

TEST_F(SystemdWasm, HasItsExecsInItsScope) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"}));
  EXPECT_EQ(Exec(id, Tool({"streams", "here"})).out, "out here\n");
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  Words words{"tasks", "exec", "--exec-id", "spins", id};
  const Words tool = Tool({"spin"});
  words.insert(words.end(), tool.begin(), tool.end());
  e2e::Program exec(CtrWords(words));
  ASSERT_TRUE(exec.ReadUntil("spins\n")) << exec.err();
  EXPECT_TRUE(e2e::Eventually([&] { return CgroupNumber(id, "pids.current") == 2; }));
  EXPECT_EQ(Ctr({"tasks", "kill", "-s", "TERM", "--exec-id", "spins", id}).status, 0);
  EXPECT_EQ(exec.Wait(), 143) << exec.err();
}

/// systemd sets what it knows of the unit again, in each of its controllers.
TEST_F(SystemdWasm, KeepsItsLimitsAndDevicesWhateverSystemdAppliesAgain) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"},
                                    {"--memory-limit", "67108864", "--cpu-quota", "50000",
                                     "--cpu-period", "100000", "--cpu-shares", "2048"}));
  EXPECT_EQ(Property(Scope(id), "MemoryMax"), "67108864");
  EXPECT_EQ(Property(Scope(id), "TasksMax"), "infinity");
  EXPECT_EQ(Property(Scope(id), "Delegate"), "yes");
  const auto limits = [&] {
    const std::string folder = CgroupFolder(id);
    return e2e::ReadText(folder + "/memory.max") + e2e::ReadText(folder + "/cpu.max") +
           e2e::ReadText(folder + "/cpu.weight") + e2e::ReadText(folder + "/pids.max");
  };
  const std::string before = limits();
  EXPECT_THAT(before, StartsWith("67108864\n50000 100000\n"));
  const Words open_kmsg{"sh", "-c",
                        "mknod /kmsg c 1 11 || exit 3; head -c 1 /kmsg >/dev/null; echo rc=$?"};
  const e2e::Output denied = Exec(id, open_kmsg);
  EXPECT_EQ(denied.out, "rc=1\n") << denied.Text();
  EXPECT_THAT(denied.err, HasSubstr("not permitted"));
  ASSERT_EQ(Systemctl({"daemon-reload"}).status, 0);
  ASSERT_EQ(Systemctl({"set-property", "--runtime", Scope(id), "MemoryLow=1M"}).status, 0);
  EXPECT_EQ(limits(), before);
  EXPECT_EQ(Exec(id, {"sh", "-c", "head -c 1 /kmsg >/dev/null; echo rc=$?"}).out, "rc=1\n");
}

class SystemdWasmLeft : public SystemdWasm {
 protected:
  void TearDown() override {
    // Also where the test ends early.
    EXPECT_EQ(Systemctl({"start", kContainerdUnit}).status, 0);
    NodeTest::TearDown();
  }
};

TEST_F(SystemdWasmLeft, HasNoUnitWhereKeeperAndEngineAreGone) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"}));
  const pid_t keeper = Keeper();
  const pid_t engine = Engine();
  ASSERT_EQ(Systemctl({"stop", kContainerdUnit}).status, 0);
  // Else it starts another engine.
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  ASSERT_EQ(kill(keeper, SIGKILL), 0);
  EXPECT_TRUE(e2e::WaitGone(keeper) && e2e::WaitGone(engine));
  // It takes the container for dead, and runs the shim's `delete`.
  ASSERT_EQ(Systemctl({"start", kContainerdUnit}).status, 0);
  EXPECT_TRUE(e2e::Eventually([&] { return ActiveState(Scope(id)) == "inactive"; }))
      << ActiveState(Scope(id));
  ASSERT_NO_FATAL_FAILURE(End(id));
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"}));
  EXPECT_EQ(ActiveState(Scope(id)), "active");
}

TEST_F(SystemdWasm, EndsByItsUnit) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"sleep", "1000000"}));
  ASSERT_EQ(Systemctl({"stop", Scope(id)}).status, 0);
  EXPECT_EQ(DeleteTask(id), 143);
}

TEST_F(SystemdWasm, IsMeasuredWhileItSpins) {
  constexpr long kSecond = 1'000'000;
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"spin"}));
  EXPECT_TRUE(e2e::Eventually([&] { return SpentMicroseconds(id) > kSecond; }))
      << SpentMicroseconds(id);
}

TEST_F(SystemdWasm, IsFrozenAndThawed) {
  const std::string id = Id();
  ASSERT_NO_FATAL_FAILURE(StartTool(id, {"spin"}));
  ASSERT_EQ(Ctr({"tasks", "pause", id}).status, 0);
  const std::string events = CgroupFolder(id) + "/cgroup.events";
  EXPECT_THAT(e2e::ReadText(events), HasSubstr("frozen 1"));
  const std::string spent = e2e::ReadText(CgroupFolder(id) + "/cpu.stat");
  EXPECT_THAT(spent, StartsWith("usage_usec "));
  EXPECT_EQ(FindTask(id).state, "PAUSED");
  EXPECT_EQ(e2e::ReadText(CgroupFolder(id) + "/cpu.stat"), spent);
  ASSERT_EQ(Ctr({"tasks", "resume", id}).status, 0);
  EXPECT_THAT(e2e::ReadText(events), HasSubstr("frozen 0"));
}

/// Its linear memory may be larger than its cgroup's limit, by the annotation.
TEST_F(SystemdWasm, EndsWhatNeedsMoreThanItsMemory) {
  const std::string id = Id();
  const e2e::Output output =
      RunTool(id, {"grow", "200"},
              {"--memory-limit", "33554432", "--annotation", "io.gantry.wasm/memory=1Gi"});
  EXPECT_EQ(output.status, 137) << output.Text();
  EXPECT_TRUE(e2e::Eventually([&] { return Leftovers(id).empty(); })) << Leftovers(id);
}

}  // namespace
}  // namespace gantry::node
