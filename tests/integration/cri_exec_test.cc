// SPDX-License-Identifier: Apache-2.0
//
// Exec as `kubectl exec -it` asks for it: over a stream that carries input, both
// outputs, the size of the terminal and the exit code.
#include <signal.h>

#include <chrono>
#include <future>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriExec : public CriPodTest {
 protected:
  std::string RunSleeper() {
    const PodConfig config = Pod();
    return RunContainerIn(RunPod(config), config, "one", {"sleep", "1000"});
  }

  /// The process of the container's whose command line this is; 0: there is none.
  pid_t InContainer(const std::string& id, const std::string& command) {
    for (const HostProcess& process : ProcessesInCgroup(id)) {
      if (process.command.starts_with(command)) {
        return process.pid;
      }
    }
    return 0;
  }

  /// Of all that containerd has made for it.
  static std::string FifosOf(const std::string& id) {
    return RunProgram({"find", settings().root, "-xdev", "-type", "p", "-path", "*" + id + "*"})
        .out;
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriExec, kSandboxers, SandboxerName);
INSTANTIATE_TEST_SUITE_P(Streaming, CriExec, kStreamingSandboxers, SandboxerName);

TEST_P(CriExec, KeepsBothOutputsAndTheExitCode) {
  const std::string id = RunSleeper();
  auto exec = OpenExec(id, {"sh", "-c", "read x; echo out-$x; echo err-$x >&2; exit 3"});
  ASSERT_TRUE(exec);
  exec->Write("word\n");
  EXPECT_EQ(exec->Wait(), 3) << exec->status();
  EXPECT_EQ(exec->out(), "out-word\n");
  EXPECT_EQ(exec->err(), "err-word\n");
}

TEST_P(CriExec, CarriesAllDataBothWays) {
  const std::string id = RunSleeper();
  std::string sent(3'000'000, '\0');
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>(i * i / 251);
  }
  auto exec = OpenExec(id, {"head", "-c", std::to_string(sent.size())});
  ASSERT_TRUE(exec);
  exec->Write(sent);
  EXPECT_EQ(exec->Wait(kLong), 0) << exec->status();
  EXPECT_EQ(exec->out().size(), sent.size());
  EXPECT_TRUE(exec->out() == sent) << "what came back is not what was sent";
}

// containerd ends the input and kills the process, in any order.
TEST_P(CriExec, EndsWithItsClient) {
  const std::string id = RunSleeper();
  const auto runs = [&] { return Exec(id, {"ps"}).out.find("cat -") != std::string::npos; };
  {
    auto exec = OpenExec(id, {"sh", "-c", "exec cat -"});
    ASSERT_TRUE(exec);
    exec->Write("ready\n");
    ASSERT_TRUE(exec->ReadUntil("ready\n")) << exec->status();
    EXPECT_TRUE(runs());
  }
  EXPECT_TRUE(Eventually([&] { return !runs(); }));
}

// Nobody is left who could end its input, and nobody asks for it again; a client of
// containerd's API that comes back might, so it goes on.
TEST_P(CriExec, OfAContainerdThatHasDiedEndsWithItsContainer) {
  const PodConfig config = Pod();
  const std::string id = RunContainerIn(RunPod(config), config, "one", {"sleep", "1000"});
  auto exec = OpenExec(id, {"sh", "-c", "echo $$; exec cat -"});
  auto terminal = OpenExec(id, {"sh"}, true);
  ASSERT_TRUE(exec && terminal);
  exec->Write("ready\n");
  ASSERT_TRUE(exec->ReadUntil("ready\n")) << exec->status();
  terminal->Write("echo is-$((40+2)); exec sleep 999\n");
  ASSERT_TRUE(terminal->ReadUntil("is-42")) << terminal->out();
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_TRUE(Eventually([&] {
    const std::string inside = Exec(id, {"ps", "-o", "args"}).out;
    return inside.contains("cat -\n") && inside.contains("sleep 999\n");
  }));
  // Those of a sentry, or of a remote sandbox, are not in the container's cgroup here.
  const pid_t reader = InContainer(id, "cat -");
  const pid_t sleeper = InContainer(id, "sleep 999");
  EXPECT_TRUE(!settings().runc() || (reader > 0 && sleeper > 0));
  EXPECT_EQ(Exec(id, {"echo", "here"}).out, "here\n");
  EXPECT_TRUE(is_streaming() || !FifosOf(id).empty());
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0)));
  for (const pid_t pid : {reader, sleeper}) {
    EXPECT_TRUE(pid == 0 || WaitGone(pid));
  }
  EXPECT_TRUE(cri().Remove(id));
  EXPECT_EQ(FifosOf(id), "");
}

TEST_P(CriExec, IsATerminalWithTheClientsSize) {
  const std::string id = RunSleeper();
  auto exec = OpenExec(id, {"sh"}, true);
  ASSERT_TRUE(exec);
  exec->Resize(33, 101);
  exec->Write(
      "[ -t 0 ] && echo is-$((30+2)); "
      "until [ \"$(stty size)\" = '33 101' ]; do sleep 0.05; done; "
      "echo is-$((40+2))\n");
  EXPECT_TRUE(exec->ReadUntil("is-32")) << exec->out();
  ASSERT_TRUE(exec->ReadUntil("is-42")) << exec->out();
  exec->Resize(50, 132);
  exec->Write("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.05; done; echo is-$((50+2))\n");
  ASSERT_TRUE(exec->ReadUntil("is-52")) << exec->out();
  exec->Write("exit 4\n");
  EXPECT_EQ(exec->Wait(), 4) << exec->status();
}

TEST_P(CriExec, TurnsControlCIntoASignal) {
  const std::string id = RunSleeper();
  auto exec = OpenExec(
      id, {"sh", "-c", "trap 'exit 8' INT; echo is-$((40+2)); while :; do sleep 0.1; done"}, true);
  ASSERT_TRUE(exec);
  ASSERT_TRUE(exec->ReadUntil("is-42")) << exec->out();
  exec->Write("\x03");
  EXPECT_EQ(exec->Wait(), 8) << exec->status();
}

TEST_P(CriExec, TellsOfAMissingProgram) {
  const std::string id = RunSleeper();
  auto exec = OpenExec(id, {"/no/such/program"});
  ASSERT_TRUE(exec);
  EXPECT_EQ(exec->Wait(), CriStream::kNone) << exec->status();
  EXPECT_NE(exec->status().find("/no/such/program"), std::string::npos) << exec->status();
}

TEST_P(CriExec, ManyAtOnceStayApart) {
  const std::string id = RunSleeper();
  constexpr int kCount = 10;
  std::vector<CriStream> execs;
  for (int i = 0; i < kCount; ++i) {
    auto exec = OpenExec(id, {"sh", "-c", "read x; echo got-$x; exit $x"}, i % 2 == 1);
    ASSERT_TRUE(exec);
    execs.push_back(std::move(*exec));
  }
  for (int i = 0; i < kCount; ++i) {
    execs[static_cast<size_t>(i)].Write(std::to_string(i) + "\n");
  }
  for (int i = 0; i < kCount; ++i) {
    CriStream& exec = execs[static_cast<size_t>(i)];
    EXPECT_EQ(exec.Wait(), i) << exec.status();
    EXPECT_NE(exec.out().find("got-" + std::to_string(i)), std::string::npos) << exec.out();
  }
}

TEST_P(CriExec, GoesOnWithoutTheEngine) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime has no engine";
  }
  const std::string id = RunSleeper();
  auto exec = OpenExec(id, {"sh", "-c", "while read x; do echo got-$x; done; exit 6"});
  auto terminal = OpenExec(id, {"sh"}, true);
  ASSERT_TRUE(exec && terminal);
  exec->Write("1\n");
  ASSERT_TRUE(exec->ReadUntil("got-1")) << exec->out();
  terminal->Write("echo is-$((40+2))\n");
  ASSERT_TRUE(terminal->ReadUntil("is-42")) << terminal->out();
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  exec->Write("2\n");
  EXPECT_TRUE(exec->ReadUntil("got-2")) << exec->out();
  terminal->Write("echo is-$((50+2)); exit 5\n");
  EXPECT_TRUE(terminal->ReadUntil("is-52")) << terminal->out();
  EXPECT_EQ(terminal->Wait(), 5) << terminal->status();
}

// containerd reads both outputs to their ends before it deletes what it has run.
TEST_P(CriExec, SyncEndsThoughAChildHoldsTheOutput) {
  if (settings().stock()) {
    GTEST_SKIP() << "with the stock runtime it does not end";
  }
  const std::string id = RunSleeper();
  const ExecResult result = Exec(id, {"sh", "-c", "echo out; echo err >&2; sleep 365d & exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
}

TEST_P(CriExec, SyncEndsThoughAChildHoldsTheOutputWhileTheEngineIsAway) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime has no engine";
  }
  const std::string id = RunSleeper();
  EXPECT_EQ(Exec(id, {"mkfifo", "/up", "/go"}).exit_code, 0);
  auto result = std::async(std::launch::async, [&] {
    return Exec(id, {"sh", "-c", "echo up >/up; read x </go; echo out; sleep 365d & exit 3"});
  });
  EXPECT_EQ(Exec(id, {"cat", "/up"}).out, "up\n");
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  kill(engine, SIGKILL);
  EXPECT_EQ(Exec(id, {"sh", "-c", "echo go >/go"}).exit_code, 0);
  const ExecResult ended = result.get();
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.out, "out\n");
}

}  // namespace
}  // namespace gantry::e2e
