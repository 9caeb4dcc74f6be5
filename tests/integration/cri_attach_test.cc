// SPDX-License-Identifier: Apache-2.0
//
// Attach as `kubectl attach -it` asks for it: to the container's own process, by
// clients that come and go.
#include <signal.h>

#include <chrono>
#include <string>
#include <string_view>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

const Words kAnswers{"sh", "-c", "while read x; do echo out-$x; echo err-$x >&2; done; exit 6"};

class CriAttach : public CriPodTest {
 protected:
  /// One that reads what clients type.
  std::string RunReader(const Words& command, bool terminal, bool input_once = false) {
    config_ = Pod();
    ContainerConfig container;
    container.name = "one";
    container.command = command;
    container.input = true;
    container.input_once = input_once;
    container.terminal = terminal;
    return RunContainerIn(RunPod(config_), config_, container);
  }

  /// Says it until the answer comes: containerd passes on what a client types before
  /// it has added the client to those that see the output.
  static bool Ask(CriStream& client, const std::string& line, std::string_view out,
                  std::string_view err = "") {
    constexpr std::chrono::seconds kOneTry{1};
    return Eventually([&] {
      client.Write(line + "\n");
      return client.ReadUntil(out, kOneTry) && client.ReadErrorsUntil(err, kOneTry);
    });
  }

  std::string log_path() const { return config_.log_directory + "/one.log"; }

 private:
  PodConfig config_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriAttach, kSandboxers, SandboxerName);
INSTANTIATE_TEST_SUITE_P(Streaming, CriAttach, kStreamingSandboxers, SandboxerName);

TEST_P(CriAttach, GivesInputAndSeesBothOutputs) {
  const std::string id = RunReader(kAnswers, false);
  for (const std::string word : {"first", "second"}) {
    auto client = OpenAttach(id);
    ASSERT_TRUE(client);
    EXPECT_TRUE(Ask(*client, word, "out-" + word + "\n", "err-" + word + "\n"))
        << client->out() << client->err();
    EXPECT_TRUE(client->out().starts_with("out-" + word)) << "only of this client's time";
  }
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  EXPECT_TRUE(WaitForText(log_path(), "stdout F out-second\n")) << ReadText(log_path());
  EXPECT_TRUE(WaitForText(log_path(), "stderr F err-second\n")) << ReadText(log_path());
}

TEST_P(CriAttach, EndsTheInputWithItsClientWhenAsked) {
  const std::string id = RunReader(kAnswers, false, true);
  {
    auto client = OpenAttach(id);
    ASSERT_TRUE(client);
    EXPECT_TRUE(Ask(*client, "word", "out-word\n")) << client->out();
  }
  EXPECT_EQ(WaitForEnd(id).exit_code(), 6);
}

TEST_P(CriAttach, IsTheContainersTerminal) {
  const std::string id = RunReader({"sh"}, true);
  {
    auto client = OpenAttach(id, true);
    ASSERT_TRUE(client);
    client->Resize(33, 101);
    EXPECT_TRUE(Ask(*client, "[ -t 0 ] && echo is-$((30+2))", "is-32")) << client->out();
    client->Write(
        "until [ \"$(stty size)\" = '33 101' ]; do sleep 0.05; done; echo is-$((40+2))\n");
    ASSERT_TRUE(client->ReadUntil("is-42")) << client->out();
  }
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  auto client = OpenAttach(id, true);
  ASSERT_TRUE(client);
  EXPECT_TRUE(Ask(*client, "echo is-$((50+2))", "is-52")) << client->out();
  client->Write("exit 5\n");
  EXPECT_EQ(WaitForEnd(id).exit_code(), 5);
  EXPECT_EQ(client->Wait(), 0) << "the stream ends with the container: " << client->status();
}

TEST_P(CriAttach, ShowsTheSameToAllClients) {
  const std::string id = RunReader(kAnswers, false);
  auto first = OpenAttach(id);
  auto second = OpenAttach(id);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(Ask(*first, "1", "out-1\n")) << first->out();
  ASSERT_TRUE(Ask(*second, "2", "out-2\n")) << second->out();
  second->Write("3\n");
  EXPECT_TRUE(first->ReadUntil("out-3\n")) << first->out();
  EXPECT_TRUE(second->ReadUntil("out-3\n")) << second->out();
}

TEST_P(CriAttach, WorksAfterARestartOfContainerd) {
  const std::string id = RunReader(kAnswers, false);
  for (const std::string word : {"before", "after"}) {
    auto client = OpenAttach(id);
    ASSERT_TRUE(client);
    EXPECT_TRUE(Ask(*client, word, "out-" + word + "\n", "err-" + word + "\n"))
        << client->out() << client->err();
    // containerd passes on to the client what it may not have written to the log yet.
    EXPECT_TRUE(WaitForText(log_path(), "stdout F out-" + word + "\n")) << ReadText(log_path());
    ASSERT_EQ(node().RestartContainerd(), "");
    ASSERT_NO_FATAL_FAILURE(Connect());
    EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  }
}

TEST_P(CriAttach, GoesOnWithoutTheEngine) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime has no engine";
  }
  const std::string id = RunReader({"sh"}, true);
  auto client = OpenAttach(id, true);
  ASSERT_TRUE(client);
  ASSERT_TRUE(Ask(*client, "echo is-$((40+2))", "is-42")) << client->out();
  const pid_t engine = node().Engine().pid;
  ASSERT_GT(engine, 0);
  kill(engine, SIGKILL);
  ASSERT_TRUE(WaitGone(engine));
  client->Write("echo is-$((50+2))\n");
  EXPECT_TRUE(client->ReadUntil("is-52")) << client->out();
  client->Resize(50, 132);
  client->Write("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.05; done; exit 5\n");
  EXPECT_EQ(WaitForEnd(id).exit_code(), 5);
}

}  // namespace
}  // namespace gantry::e2e
