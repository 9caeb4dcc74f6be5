// SPDX-License-Identifier: Apache-2.0
//
// The units' restart and reload while the node works: processes are started in
// containers, states are asked for, output streams. Nothing of it fails or is lost.
#include <signal.h>

#include <atomic>
#include <future>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/node/harness/node_test.h"

namespace gantry::node {
namespace {

class UnitsUnderLoad : public NodeTest {
 protected:
  using Failures = std::vector<std::string>;

  static constexpr int kExecClients = 2;

  // Each of them is its own kind of replacement.
  static std::vector<Words> Replacements() {
    return {{"restart", kEngineUnit},
            {"reload", kEngineUnit},
            {"reload", kKeeperUnit},
            {"restart", kEngineUnit},
            {"reload", kKeeperUnit}};
  }

  /// What went wrong with execs of `id`, one after the other until all is over.
  Failures ExecAgainAndAgain(const std::string& id) {
    Failures failures;
    for (int code = 1; !over_ || code == 1; code = code % 100 + 1) {
      const e2e::Output output = Exec(id, {"sh", "-c", "echo said; exit " + std::to_string(code)});
      if (output.status != code || output.out != "said\n") {
        failures.push_back(output.Text());
      }
      ++calls_;
    }
    return failures;
  }

  Failures AskForTheStateAgainAndAgain(const std::string& id, pid_t pid) {
    Failures failures;
    do {
      const e2e::Output output = Ctr({"tasks", "ls"});
      const e2e::Task task = e2e::TaskIn(output.out, id);
      if (task.state != "RUNNING" || task.pid != pid) {
        failures.push_back(output.Text());
      }
      ++calls_;
    } while (!over_);
    return failures;
  }

  /// A container that prints numbered lines until the file /stop is there, and ends with 42.
  static e2e::Program Counter(const std::string& id, bool terminal) {
    e2e::Program::Options options;
    options.terminal = terminal;
    Words flags{"--rm", "--cgroup", "system.slice:gantry:" + id};
    if (terminal) {
      flags.emplace_back("-t");
    }
    return {CtrWords(CtrRunWords(id,
                                 {"sh", "-c",
                                  "i=0; until [ -e /stop ]; do i=$((i+1)); echo \"line $i.\"; "
                                  "sleep 0.05; done; exit 42"},
                                 flags)),
            options};
  }

  /// Empty: the counter's lines are all there, once each and in order.
  static std::string Gap(const std::string& out) {
    std::istringstream lines(out);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      std::erase(line, '\r');
      const std::string wanted = "line " + std::to_string(++number) + ".";
      if (line != wanted) {
        return "'" + line + "' instead of '" + wanted + "'";
      }
    }
    return number == 0 ? "no line" : "";
  }

  int calls() const { return calls_; }

  void Over() { over_ = true; }

 private:
  std::atomic<bool> over_ = false;
  std::atomic<int> calls_ = 0;
};

TEST_F(UnitsUnderLoad, NoCallFailsAndNothingIsLostWhileTheyAreReplaced) {
  const std::string id = Id();
  const std::string piped = Id("piped");
  const std::string terminal = Id("terminal");
  ASSERT_NO_FATAL_FAILURE(Start(id, {"sleep", "1000"}));
  e2e::Program pipe = Counter(piped, false);
  e2e::Program tty = Counter(terminal, true);
  ASSERT_TRUE(pipe.ReadUntil("line 3.")) << pipe.err();
  ASSERT_TRUE(tty.ReadUntil("line 3.")) << tty.out();
  const pid_t pids[] = {FindTask(id).pid, FindTask(piped).pid, FindTask(terminal).pid};
  const pid_t keeper = Keeper();
  const std::string restarts = Property(kKeeperUnit, "NRestarts");

  std::vector<std::future<Failures>> clients;
  for (int i = 0; i < kExecClients; ++i) {
    clients.push_back(std::async(std::launch::async, [&] { return ExecAgainAndAgain(id); }));
  }
  clients.push_back(
      std::async(std::launch::async, [&] { return AskForTheStateAgainAndAgain(id, pids[0]); }));
  for (const Words& replacement : Replacements()) {
    const int before = calls();
    EXPECT_TRUE(e2e::Eventually([&] { return calls() > before + kExecClients; }));
    const pid_t engine = Engine();
    const e2e::Output replaced = Systemctl(replacement);
    EXPECT_EQ(replaced.status, 0) << testing::PrintToString(replacement) << replaced.Text();
    EXPECT_EQ(Engine() != engine, replacement.back() == kEngineUnit);
  }
  const int before = calls();
  EXPECT_TRUE(e2e::Eventually([&] { return calls() > before + kExecClients; }));
  Over();
  for (std::future<Failures>& client : clients) {
    EXPECT_THAT(client.get(), testing::IsEmpty());
  }

  EXPECT_EQ(FindTask(id).pid, pids[0]);
  EXPECT_EQ(FindTask(piped).pid, pids[1]);
  EXPECT_EQ(FindTask(terminal).pid, pids[2]);
  EXPECT_EQ(Keeper(), keeper);
  EXPECT_EQ(Property(kKeeperUnit, "NRestarts"), restarts);
  for (auto* const counter : {&pipe, &tty}) {
    const std::string& counts = counter == &pipe ? piped : terminal;
    // How it ends itself says nothing: the container may have ended before it.
    Exec(counts, {"touch", "/stop"});
    EXPECT_EQ(counter->Wait(), 42) << counter->err();
    EXPECT_EQ(Gap(counter->out()), "");
    EXPECT_TRUE(e2e::Eventually([&] { return Leftovers(counts).empty(); })) << Leftovers(counts);
  }
}

}  // namespace
}  // namespace gantry::node
