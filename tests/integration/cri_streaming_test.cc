// SPDX-License-Identifier: Apache-2.0
//
// Streams over the sandbox's socket in place of fifos (io_type = "streaming"): that they are used
// at all, what becomes of them when the engine or containerd is killed with bytes under way, and
// that nothing is left. All else that exec, attach and logs owe is asked of them by the tests of
// these, which have them as one kind of pod.
#include <signal.h>

#include <filesystem>
#include <sstream>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriStreaming : public CriPodTest {
 protected:
  std::string RunOne(const Words& command, bool input = false) {
    config_ = Pod();
    ContainerConfig container;
    container.name = "one";
    container.command = command;
    container.input = input;
    return RunContainerIn(RunPod(config_), config_, container);
  }

  static void KillEngine() {
    const pid_t engine = node().Engine().pid;
    ASSERT_GT(engine, 0);
    kill(engine, SIGKILL);
    ASSERT_TRUE(WaitGone(engine));
    ASSERT_TRUE(Eventually([] { return node().Engine().pid > 0; }));
  }

  std::string log_path() const { return config_.log_directory + "/one.log"; }

  /// Of the log, in its order and whole: what stands behind `word` in its lines.
  std::vector<int> Numbers(const std::string& word) const {
    std::vector<int> numbers;
    std::istringstream lines(ReadText(log_path()));
    for (std::string line; std::getline(lines, line);) {
      if (const size_t at = line.find(word); at != std::string::npos) {
        numbers.push_back(std::stoi(line.substr(at + word.size())));
      }
    }
    return numbers;
  }

  /// How many sockets the keeper and its store have.
  static size_t KeepersSockets() {
    size_t sockets = 0;
    std::error_code ignored;
    const std::string folder = "/proc/" + std::to_string(node().Keeper().pid) + "/fd";
    for (const auto& fd : std::filesystem::directory_iterator(folder, ignored)) {
      const auto target = std::filesystem::read_symlink(fd.path(), ignored);
      sockets += target.string().starts_with("socket:") ? 1 : 0;
    }
    return sockets;
  }

 private:
  PodConfig config_;
};

INSTANTIATE_TEST_SUITE_P(Streaming, CriStreaming, kStreamingSandboxers, SandboxerName);

TEST_P(CriStreaming, MakesNoFifo) {
  const std::string id = RunOne({"sh", "-c", "echo word; echo other >&2; sleep 1000"}, true);
  EXPECT_TRUE(WaitForText(log_path(), "stdout F word\n")) << ReadText(log_path());
  EXPECT_TRUE(WaitForText(log_path(), "stderr F other\n")) << ReadText(log_path());
  EXPECT_EQ(RunProgram({"find", settings().root, "-xdev", "-type", "p", "-path", "*" + id + "*"})
                .out.find("stdout"),
            std::string::npos);
}

TEST_P(CriStreaming, KeepsTheLastWordsOfShortLives) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  for (int i = 0; i < 10; ++i) {
    const std::string name = "short" + std::to_string(i);
    const std::string id = RunContainerIn(
        pod, config, name, {"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"});
    EXPECT_EQ(WaitForEnd(id).exit_code(), 0);
    const std::string path = config.log_directory + "/" + name + ".log";
    EXPECT_TRUE(WaitForText(path, "stdout F end\n"));
    EXPECT_EQ(std::ranges::count(ReadText(path), 'x'), 100000);
  }
}

TEST_P(CriStreaming, LosesAndDoublesNothingWithoutTheEngine) {
  const std::string id =
      RunOne({"sh", "-c",
              "i=0; while [ ! -e /stop ]; do i=$((i+1)); echo line-$i; "
              "[ $((i % 100)) -gt 0 ] || sleep 0.01; done; echo end-$i; sleep 1000"});
  for (int i = 0; i < 5; ++i) {
    const size_t before = Numbers("line-").size();
    ASSERT_NO_FATAL_FAILURE(KillEngine());
    ASSERT_TRUE(Eventually([&] { return Numbers("line-").size() > before + 100; }));
  }
  EXPECT_EQ(Exec(id, {"touch", "/stop"}).exit_code, 0);
  ASSERT_TRUE(WaitForText(log_path(), "end-"));
  const std::vector<int> lines = Numbers("line-");
  ASSERT_EQ(lines.size(), static_cast<size_t>(Numbers("end-").at(0)));
  for (size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i], static_cast<int>(i) + 1);
  }
}

TEST_P(CriStreaming, CarriesInputAndOutputWithoutTheEngine) {
  const std::string id = RunOne({"sleep", "1000"});
  std::string sent(4'000'000, '\0');
  for (size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>(i * i / 251);
  }
  auto exec = OpenExec(id, {"head", "-c", std::to_string(sent.size())});
  ASSERT_TRUE(exec);
  for (int part = 0; part < 4; ++part) {
    exec->Write(std::string_view(sent).substr(size_t(part) * 1'000'000, 1'000'000));
    ASSERT_NO_FATAL_FAILURE(KillEngine());
  }
  EXPECT_EQ(exec->Wait(kLong), 0) << exec->status();
  EXPECT_EQ(exec->out().size(), sent.size());
  EXPECT_TRUE(exec->out() == sent) << "what came back is not what was sent";
}

TEST_P(CriStreaming, AnExecEndsThoughItsInputIsNotRead) {
  const std::string id = RunOne({"sleep", "1000"});
  auto exec = OpenExec(id, {"sh", "-c", "echo ready; exit 3"});
  ASSERT_TRUE(exec);
  // More than any window and pipe between.
  exec->Write(std::string(1'000'000, 'x'));
  EXPECT_EQ(exec->Wait(), 3) << exec->status();
  EXPECT_EQ(exec->out(), "ready\n");
}

TEST_P(CriStreaming, GoesOnWithAContainerdThatIsRestarted) {
  const std::string id = RunOne(
      {"sh", "-c",
       "i=0; while [ ! -e /stop ]; do i=$((i+1)); echo line-$i; sleep 0.01; done; echo end-$i; "
       "sleep 1000"});
  ASSERT_TRUE(WaitForText(log_path(), "line-"));
  const int last = Numbers("line-").back();
  ASSERT_EQ(node().RestartContainerd(), "");
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(id, {"touch", "/stop"}).exit_code, 0);
  ASSERT_TRUE(WaitForText(log_path(), "end-")) << "the process goes on, and so does its log";
  const std::vector<int> lines = Numbers("line-");
  EXPECT_GT(lines.back(), last);
  EXPECT_EQ(lines.back(), Numbers("end-").at(0));
  EXPECT_TRUE(std::ranges::is_sorted(lines)) << "nothing is told twice";
}

TEST_P(CriStreaming, LeavesNothing) {
  const size_t before = KeepersSockets();
  const std::string id = RunOne({"sh", "-c", "echo word; sleep 1000"}, true);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Exec(id, {"echo", "here"}).out, "here\n");
  }
  ASSERT_NO_FATAL_FAILURE(RemovePods());
  EXPECT_TRUE(Eventually([&] { return KeepersSockets() <= before; }))
      << KeepersSockets() << " sockets, before it were " << before;
}

}  // namespace
}  // namespace gantry::e2e
