// SPDX-License-Identifier: Apache-2.0
//
// Consoles that are nobody's controlling terminal: what is typed into them, and their
// size, become calls of the backend.
#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "core/config/config.h"
#include "core/log/log.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::HasSubstr;

class TaskConsole : public TaskTest {
 protected:
  void SetUp() override {
    backend_.LeaveOut("resize");
    Announce("c1");
    ASSERT_TRUE(OpenConsole("c1"));
    pb::CreateTaskRequest request = CreateRequest("c1");
    request.set_terminal(true);
    request.set_stdin(dir_.path() + "/in");
    const auto created = Ask<pb::CreateTaskResponse>("Create", request, "c1");
    ASSERT_TRUE(created) << created.error().message;
  }

  /// For the next process of that name, with its input.
  bool OpenConsole(const std::string& name, ConsoleKind kind = ConsoleKind::kForeign) {
    int master = -1;
    int slave = -1;
    termios settings{};
    settings.c_cflag = CS8 | CREAD;
    settings.c_lflag = ISIG;
    settings.c_cc[VINTR] = 3;
    settings.c_cc[VQUIT] = 28;
    const std::string fifo = dir_.path() + "/in";
    unlink(fifo.c_str());
    if (openpty(&master, &slave, nullptr, &settings, nullptr) != 0 ||
        mkfifo(fifo.c_str(), 0600) != 0) {
      return false;
    }
    slave_.reset(slave);
    client_.reset(open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    backend_.GiveConsole(name, UniqueFd(master), kind);
    return bool(client_);
  }

  bool Type(std::string_view text) {
    return write(client_.get(), text.data(), text.size()) == std::ssize(text);
  }

  /// The exec e1 of c1.
  bool ExecWithConsole() {
    pb::ExecProcessRequest request;
    request.set_id("c1");
    request.set_exec_id("e1");
    request.set_terminal(true);
    request.set_stdin(dir_.path() + "/in");
    request.mutable_spec()->set_value(R"({"args":["/bin/true"],"cwd":"/"})");
    return OpenConsole("c1/e1") && Ask<wire::Empty>("Exec", request, "c1");
  }

  /// Such calls have been made.
  bool Comes(const std::string& call, size_t count = 1) {
    return Until([&, count] { return backend_.Count(call) >= count; });
  }

  Result<wire::Empty> Resize(const std::string& id, bool replay = false) {
    pb::ResizePtyRequest request;
    request.set_id(id);
    request.set_width(80);
    request.set_height(25);
    return Ask<wire::Empty>("ResizePty", request, id, replay);
  }

  UniqueFd slave_;
  UniqueFd client_;
};

TEST_F(TaskConsole, WhatIsTypedBecomesASignal) {
  ASSERT_TRUE(Start("c1"));
  ASSERT_TRUE(Type("text\x03"));
  ASSERT_TRUE(Comes("console c1 2"));
  EXPECT_GT(backend_.LeftFor("console c1"), std::chrono::milliseconds(0));
  EXPECT_LE(backend_.LeftFor("console c1"), around_.config.timeouts.kill);
}

TEST_F(TaskConsole, ItsSizeBecomesASignal) {
  ASSERT_TRUE(Resize("c1"));
  Settle();
  EXPECT_EQ(backend_.Count("console c1 28"), 0U) << "it has not been started";
  ASSERT_TRUE(Start("c1"));
  ASSERT_TRUE(Resize("c1"));
  EXPECT_TRUE(Comes("console c1 28"));
  EXPECT_EQ(backend_.Count("console c1 28"), 1U);
}

TEST_F(TaskConsole, OfAnExecGoesToTheExec) {
  ASSERT_TRUE(Start("c1"));
  ASSERT_TRUE(ExecWithConsole());
  ASSERT_TRUE(Start("c1/e1"));
  ASSERT_TRUE(Type("\x1c"));
  EXPECT_TRUE(Comes("console c1/e1 3"));
}

TEST_F(TaskConsole, OfAnExecWaitsForItsStart) {
  ASSERT_TRUE(Start("c1"));
  ASSERT_TRUE(ExecWithConsole());
  backend_.Hold("start c1/e1");
  const uint32_t start = SendStart("c1/e1");
  ASSERT_TRUE(Until([&] { return backend_.Held("start c1/e1"); }));
  pb::ResizePtyRequest request;
  request.set_id("c1");
  request.set_exec_id("e1");
  request.set_width(80);
  request.set_height(25);
  EXPECT_TRUE(Ask<wire::Empty>("ResizePty", request, "c1"));
  // One call behind the other goes through.
  EXPECT_TRUE(Kill("c1", SIGTERM));
  EXPECT_EQ(backend_.Count("console c1/e1 28"), 0U);
  backend_.Release("start c1/e1");
  EXPECT_TRUE(Take(start));
  EXPECT_TRUE(Comes("console c1/e1 28"));
}

TEST_F(TaskConsole, SignalsWaitForEachOtherAndForNothingElse) {
  ASSERT_TRUE(Start("c1"));
  backend_.Hold("console c1");
  ASSERT_TRUE(Type("\x03\x1c\x03"));
  ASSERT_TRUE(Until([&] { return backend_.Held("console c1"); }));
  EXPECT_TRUE(Kill("c1", 15));
  EXPECT_EQ(backend_.Count("console c1 3"), 0U);
  backend_.Release("console c1");
  ASSERT_TRUE(Comes("console c1 2", 2));
  EXPECT_EQ(backend_.Count("console c1 3"), 1U);
}

TEST_F(TaskConsole, MoreOfTheSameAreDroppedWhereManyWait) {
  ASSERT_TRUE(Start("c1"));
  backend_.Hold("console c1");
  ASSERT_TRUE(Type("\x03"));
  ASSERT_TRUE(Until([&] { return backend_.Held("console c1"); }));
  ASSERT_TRUE(Type(std::string(100, '\x03') + "\x1c"));
  int left = 1;
  ASSERT_TRUE(Until([&] { return ioctl(client_.get(), FIONREAD, &left) == 0 && left == 0; }));
  backend_.Release("console c1");
  ASSERT_TRUE(Comes("console c1 3"));
  EXPECT_EQ(backend_.Count("console c1 2"), 17U) << "one under way, 16 that wait";
}

TEST_F(TaskConsole, ABackendThatFailsIsNamedInTheLog) {
  std::string logged;
  log::SetSinkForTest([&](std::string_view line) { logged += line; });
  ASSERT_TRUE(Start("c1"));
  backend_.FailNext("console c1", Error{Code::kInternal, 0, "no such group", {}});
  ASSERT_TRUE(Type("\x03"));
  ASSERT_TRUE(Comes("console c1 2"));
  Settle();
  EXPECT_THAT(logged, HasSubstr("signal 2 of its console: no such group"));
  logged.clear();
  backend_.LeaveOut("console");
  ASSERT_TRUE(Type("\x03"));
  ASSERT_TRUE(Comes("console c1 2", 2));
  Settle();
  EXPECT_EQ(logged, "");
  log::SetSinkForTest([](std::string_view) {});
}

TEST_F(TaskConsole, NothingGoesToWhatHasEnded) {
  ASSERT_TRUE(Start("c1"));
  backend_.Hold("console c1");
  ASSERT_TRUE(Type("\x03\x1c"));
  ASSERT_TRUE(Until([&] { return backend_.Held("console c1"); }));
  End("c1", 0);
  backend_.Release("console c1");
  Settle();
  EXPECT_EQ(backend_.Count("console c1 3"), 0U);
  EXPECT_TRUE(Delete("c1"));
}

TEST_F(TaskConsole, TheNextEngineWaitsForItsBackend) {
  ASSERT_TRUE(Start("c1"));
  backend_.Hold("recover c1");
  RestartEngine();
  ASSERT_TRUE(Until([&] { return backend_.Held("recover c1"); }));
  ASSERT_TRUE(Type("\x03"));
  int left = 1;
  ASSERT_TRUE(Until([&] { return ioctl(client_.get(), FIONREAD, &left) == 0 && left == 0; }));
  backend_.Release("recover c1");
  ASSERT_TRUE(Comes("console c1 2"));
  ASSERT_TRUE(Resize("c1"));
  EXPECT_TRUE(Comes("console c1 28"));
}

}  // namespace
}  // namespace gantry::task
