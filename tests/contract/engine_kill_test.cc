// SPDX-License-Identifier: Apache-2.0
//
// kill -9 of the engine between any two calls, and in the middle of each:
// every call is answered once, with what it would have answered, and events
// come once and in order.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <set>

#include <gmock/gmock.h>

#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/interrupt.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Step {
  const char* name;
  std::function<Status(const Box&)> call;
  /// The step without which it is none.
  const char* after = nullptr;
};

/// A life with everything in it.
const std::vector<Step>& Life() {
  static const std::vector<Step> steps = {
      {"Create", [](const Box& box) { return Plain(box.Create()); }},
      {"State", [](const Box& box) { return Plain(box.State()); }},
      {"Start", [](const Box& box) { return Plain(box.Start()); }},
      {"Exec", [](const Box& box) { return box.Exec("x1", {"sh", "-c", "exit 5"}); }},
      {"Start exec", [](const Box& box) { return Plain(box.Start("x1")); }, "Exec"},
      {"Wait exec",
       [](const Box& box) -> Status {
         GANTRY_TRY(const auto ended, box.Wait("x1"));
         EXPECT_EQ(ended.exit_status(), 5U);
         return {};
       },
       "Exec"},
      {"Delete exec",
       [](const Box& box) -> Status {
         GANTRY_TRY(const auto deleted, box.Delete("x1"));
         EXPECT_EQ(deleted.exit_status(), 5U);
         return {};
       },
       "Exec"},
      {"Pause", [](const Box& box) { return box.Pause(); }},
      {"Update", [](const Box& box) { return box.Update("{}"); }},
      {"Resume", [](const Box& box) { return box.Resume(); }, "Pause"},
      {"Stats", [](const Box& box) { return Plain(box.Stats()); }},
      {"Pids", [](const Box& box) { return Plain(box.Pids()); }},
      {"Kill", [](const Box& box) { return box.Kill(SIGKILL); }},
      {"Wait",
       [](const Box& box) -> Status {
         GANTRY_TRY(const auto ended, box.Wait());
         EXPECT_EQ(ended.exit_status(), 137U);
         return {};
       }},
      {"Delete",
       [](const Box& box) -> Status {
         GANTRY_TRY(const auto deleted, box.Delete());
         EXPECT_EQ(deleted.exit_status(), 137U);
         return {};
       }},
  };
  return steps;
}

class EngineKill : public ContractTest {
 protected:
  /// Goes through all of it but what the backend leaves out; `before` is called before each
  /// step, with its number. The events are those of the rest, once and in order.
  static void ExpectLife(const Box& box, const std::function<void(size_t step)>& before) {
    std::set<std::string> left_out;
    for (size_t i = 0; i < Life().size(); ++i) {
      const Step& step = Life()[i];
      before(i);
      if (step.after != nullptr && left_out.contains(step.after)) {
        continue;
      }
      const Status done = step.call(box);
      if (IsLeftOut(step.name, CodeOf(done))) {
        left_out.insert(step.name);
        continue;
      }
      ASSERT_OK(done) << step.name;
    }
    std::vector<std::string> topics = {"create", "start"};
    if (!left_out.contains("Exec")) {
      topics.insert(topics.end(), {"exec-added(x1)", "exec-started(x1)", "exit(x1)"});
    }
    if (!left_out.contains("Pause")) {
      topics.insert(topics.end(), {"paused", "resumed"});
    }
    topics.insert(topics.end(), {"exit", "delete"});
    EXPECT_EQ(node().containerd().WaitForTopics(box.id(), topics.size()), topics) << box.id();
  }

  /// The start of the exec, which ends at once with 6, does; what `AtEachMoment` asks for.
  static bool LivesThrough(const Box& box, const std::string& exec, size_t moment) {
    pb::StartRequest request;
    request.set_id(box.id());
    request.set_exec_id(exec);
    const auto started = CallAndKill<pb::StartResponse>(node(), box.bundle(), box.client(), "Start",
                                                        request, moment);
    EXPECT_OK(started.answer);
    const auto ended = box.Wait(exec);
    EXPECT_OK(ended);
    EXPECT_EQ(ended ? ended->exit_status() : 0, 6U);
    EXPECT_OK(box.Delete(exec));
    return started.in_time;
  }

  /// Its end is known and told, once and in order; then it goes.
  void ExpectEndOf(Box& box, uint32_t status) {
    const auto ended = box.Wait();
    EXPECT_OK(ended);
    EXPECT_EQ(ended ? ended->exit_status() : 0, status);
    EXPECT_OK(box.Delete());
    EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
                ElementsAre("create", "start", "exit", "delete"));
    Finish(box);
  }
};

TEST_P(EngineKill, WhileItMountsLeavesNothingMounted) {
  const std::string layer = node().root() + "/layer";
  const std::string left = node().run_dir() + "/layers/" + Id();
  std::filesystem::create_directories(layer + "/of-the-image");
  std::filesystem::create_directories(left);
  ASSERT_EQ(::mount(layer.c_str(), left.c_str(), nullptr, MS_BIND, nullptr), 0);
  node().KillEngine();
  Running();
  EXPECT_THAT(e2e::MountsBelow(node().run_dir()), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(layer + "/of-the-image"));
  std::filesystem::remove_all(layer);
}

TEST_P(EngineKill, BeforeEachCall) {
  for (size_t victim = 0; victim < Life().size(); ++victim) {
    SCOPED_TRACE(std::string("killed before ") + Life()[victim].name);
    Box& box = Announced({}, "-" + std::to_string(victim));
    ASSERT_NO_FATAL_FAILURE(ExpectLife(box, [victim](size_t step) {
      if (step == victim) {
        node().KillEngine();
      }
    }));
    Finish(box);
  }
}

TEST_P(EngineKill, BeforeEveryCallOfOneLife) {
  Box& box = Announced();
  ExpectLife(box, [](size_t) { node().KillEngine(); });
}

TEST_P(EngineKill, DuringCreate) {
  AtEachMoment([this](size_t moment) {
    Box& box = Announced({.args = {"sh", "-c", "exit 4"}}, "-" + std::to_string(moment));
    const auto created = CallAndKill<pb::CreateTaskResponse>(node(), box.bundle(), box.client(),
                                                             "Create", box.CreateRequest(), moment);
    EXPECT_OK(created.answer);
    EXPECT_OK(box.Start());
    ExpectEndOf(box, 4);
    return created.in_time;
  });
}

// What its client reads: to the end, once, as containerd's client does.
std::string ReadToEnd(const std::string& fifo) {
  std::string text;
  std::array<char, 4096> buffer{};
  const UniqueFd reader(open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
  for (ssize_t bytes = 0; (bytes = read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(bytes));
  }
  return text;
}

TEST_P(EngineKill, DuringCreateEndsNoStream) {
  AtEachMoment([this](size_t moment) {
    Box& box = Announced({.args = {"sh", "-c", "echo out; exit 4"}}, "-" + std::to_string(moment));
    const std::string fifo = box.bundle() + "/out";
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    auto text = std::async(std::launch::async, [&] { return ReadToEnd(fifo); });
    pb::CreateTaskRequest request = box.CreateRequest();
    request.set_stdout(fifo);
    const auto created = CallAndKill<pb::CreateTaskResponse>(node(), box.bundle(), box.client(),
                                                             "Create", request, moment);
    EXPECT_OK(created.answer);
    EXPECT_OK(box.Start());
    // A reader that nothing came for does not wait for ever.
    UniqueFd(open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).reset();
    EXPECT_EQ(text.get(), "out\n");
    ExpectEndOf(box, 4);
    return created.in_time;
  });
}

TEST_P(EngineKill, DuringStartOfAProgramThatEndsAtOnce) {
  AtEachMoment([this](size_t moment) {
    Box& box = Created({.args = {"sh", "-c", "exit 4"}}, "-" + std::to_string(moment));
    pb::StartRequest request;
    request.set_id(box.id());
    const auto started = CallAndKill<pb::StartResponse>(node(), box.bundle(), box.client(), "Start",
                                                        request, moment);
    EXPECT_OK(started.answer);
    ExpectEndOf(box, 4);
    return started.in_time;
  });
}

TEST_P(EngineKill, DuringStartOfAnExecThatEndsAtOnce) {
  Box& box = Running();
  std::vector<std::string> expected = {"create", "start"};
  AtEachMoment([&](size_t moment) {
    const std::string exec = "x" + std::to_string(moment);
    EXPECT_OK(box.Exec(exec, {"sh", "-c", "exit 6"}));
    const bool in_time = LivesThrough(box, exec, moment);
    for (const char* topic : {"exec-added", "exec-started", "exit"}) {
      expected.push_back(std::string(topic) + "(" + exec + ")");
    }
    return in_time;
  });
  EXPECT_EQ(node().containerd().WaitForTopics(box.id(), expected.size()), expected);
}

TEST_P(EngineKill, DuringStartOfAnExecEndsNoStream) {
  Box& box = Running();
  AtEachMoment([&](size_t moment) {
    const std::string exec = "x" + std::to_string(moment);
    const std::string fifo = box.bundle() + "/" + exec;
    EXPECT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    auto text = std::async(std::launch::async, [&] { return ReadToEnd(fifo); });
    EXPECT_OK(box.Exec(exec, {"sh", "-c", "echo out; exit 6"}, false, fifo));
    const bool in_time = LivesThrough(box, exec, moment);
    // A reader that nothing came for does not wait for ever.
    UniqueFd(open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).reset();
    EXPECT_EQ(text.get(), "out\n");
    return in_time;
  });
}

TEST_P(EngineKill, DuringStartOfAnExecWithATerminalRunsItOnce) {
  Box& box = Running();
  AtEachMoment([&](size_t moment) {
    const std::string exec = "x" + std::to_string(moment);
    const std::string file = Id("-ran-") + exec;
    EXPECT_OK(
        box.Exec(exec, {"sh", "-c", "test -t 1 && echo ran >>/mnt/" + file + "; exit 6"}, true));
    const bool in_time = LivesThrough(box, exec, moment);
    const std::string path = node().rootfs() + "/mnt/" + file;
    EXPECT_EQ(e2e::ReadText(path), "ran\n");
    unlink(path.c_str());
    return in_time;
  });
}

TEST_P(EngineKill, DuringDelete) {
  // Delete removes the record and makes no file: the moments are those of the exit.
  for (const size_t moment : {0, 1}) {
    SCOPED_TRACE(moment);
    Box& box = Running({.args = {"sh", "-c", "exit 4"}}, "-" + std::to_string(moment));
    ASSERT_OK(box.Wait());
    pb::DeleteRequest request;
    request.set_id(box.id());
    const auto deleted = CallAndKill<pb::DeleteResponse>(node(), box.bundle(), box.client(),
                                                         "Delete", request, moment);
    ASSERT_OK(deleted.answer);
    EXPECT_EQ(deleted.answer->exit_status(), 4U);
    EXPECT_THAT(node().containerd().WaitForTopics(box.id(), 4),
                ElementsAre("create", "start", "exit", "delete"));
    Finish(box);
  }
}

TEST_P(EngineKill, DuringWaitAndExit) {
  AtEachMoment([this](size_t moment) {
    Box& box = Running({}, "-" + std::to_string(moment));
    pb::WaitRequest wait;
    wait.set_id(box.id());
    auto waiting = box.client().Begin<pb::WaitResponse>("Wait", wait);
    EXPECT_OK(waiting);
    const pid_t engine = node().Engine();
    BundleWatch watch(box.bundle());
    const Status killed = box.Kill(SIGKILL);
    EXPECT_OK(killed);
    const bool in_time = waiting && watch.WaitFor(moment, waiting->fd());
    EXPECT_TRUE(Signal(engine, SIGKILL));
    const auto ended = waiting ? waiting->Get() : std::unexpected(waiting.error());
    EXPECT_OK(ended);
    EXPECT_EQ(ended ? ended->exit_status() : 0, 137U);
    ExpectEndOf(box, 137);
    return in_time;
  });
}

TEST_P(EngineKill, WhoseCallersHaveGoneLosesNoExit) {
  Box& box = Created({.args = {"sh", "-c", "exit 4"}});
  pb::StartRequest request;
  request.set_id(box.id());
  // Nobody will ask for the answer, so no request is replayed.
  EXPECT_TRUE(Signal(node().Engine(), SIGSTOP));
  {
    const auto pending = box.client().Begin<pb::StartResponse>("Start", request);
    ASSERT_OK(pending);
  }
  node().KillEngine();
  const auto state = box.State();
  ASSERT_OK(state);
  if (state->status() == pb::CREATED) {
    ASSERT_OK(box.Start());
  }
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 4U);
}

TEST_P(EngineKill, KeepsStreamsWhole) {
  const std::string fifo = node().root() + "/" + Id() + ".out";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  e2e::Program reader({"cat", fifo});
  Box& box = Running({.args = {"sh", "-c", "seq 1 300000; exit 9"}, .out = fifo});
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(reader.ReadUntil("\n" + std::to_string(round * 50000) + "\n"));
    node().KillEngine();
  }
  // Whoever reads must go on: the program cannot end before its output is taken.
  ASSERT_TRUE(reader.ReadUntil("\n300000\n"));
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 9U);
  EXPECT_EQ(reader.Wait(), 0) << "the end of the stream";
  EXPECT_TRUE(reader.out() == e2e::RunProgram({"seq", "1", "300000"}).out) << reader.out().size();
  unlink(fifo.c_str());
}

TEST_P(EngineKill, KeepsATerminal) {
  const std::string out = node().root() + "/" + Id() + ".out";
  const std::string in = node().root() + "/" + Id() + ".in";
  ASSERT_EQ(mkfifo(out.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
  e2e::Program reader({"cat", out});
  const UniqueFd writer(open(in.c_str(), O_RDWR | O_CLOEXEC));
  Box& box = Running({.args = {"sh"}, .terminal = true, .in = in, .out = out});
  const auto type = [&](const std::string& text) {
    EXPECT_EQ(write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  type("echo one-$((40+1))\n");
  ASSERT_TRUE(reader.ReadUntil("one-41"));
  node().KillEngine();
  type("echo two-$((40+2))\n");
  EXPECT_TRUE(reader.ReadUntil("two-42"));
  EXPECT_OK(box.Resize());
  type("stty size\n");
  EXPECT_TRUE(reader.ReadUntil("40 100"));
  type("exit 3\n");
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 3U);
  unlink(in.c_str());
  unlink(out.c_str());
}

INSTANTIATE_CONTRACT(EngineKill);

}  // namespace
}  // namespace gantry::contract
