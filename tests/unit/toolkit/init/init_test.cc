// SPDX-License-Identifier: Apache-2.0
//
// gantry-init, as who starts it sees it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::container {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

UniqueFd MemoryWith(const std::string& text) {
  UniqueFd fd(::memfd_create("config", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  return fd;
}

std::pair<UniqueFd, UniqueFd> Sockets() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string LineOf(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) {
    line += c;
  }
  return line;
}

// One that runs. Its descriptors: 3 config, 4 gate, 5 result, 6 console, and 7 and 8 what an exec
// has of `joins`: its `process` and the init's pidfd.
class Init {
 public:
  struct Joins {
    UniqueFd process;
    UniqueFd init;
  };

  Init(const Bundle& bundle, const Config& config, std::vector<std::string> more = {},
       const Joins& joins = {}) {
    auto [gate, its_gate] = Sockets();
    auto [result, its_result] = Sockets();
    auto [console, its_console] = Sockets();
    auto [output, its_output] = Sockets();
    const UniqueFd text = MemoryWith(Bundle::TextOf(config));
    std::vector<std::string> words = {GANTRY_INIT};
    if (joins.process) {
      words.insert(words.end(), {"exec", "--process=7", "--init=8"});
    }
    words.insert(words.end(), {"--bundle=" + bundle.path(), "--config=3", "--gate=4", "--result=5",
                               "--console=6"});
    words.insert(words.end(), more.begin(), more.end());
    pid_ = ::fork();
    if (pid_ == 0) {
      const int fds[] = {text.get(),        its_gate.get(),      its_result.get(),
                         its_console.get(), joins.process.get(), joins.init.get()};
      Execute(words, fds, its_output.get());
    }
    gate_ = std::move(gate);
    result_ = std::move(result);
    console_ = std::move(console);
    output_ = std::move(output);
  }

  // One line of its answers.
  std::string Answer() const { return LineOf(result_.get()); }

  // One line of its output.
  std::string ReadLine() const { return LineOf(output_.get()); }

  void Open() const { EXPECT_EQ(::write(gate_.get(), "x", 1), 1); }

  void CloseGate() { gate_.reset(); }

  std::string Output() const { return Drain(output_.get()); }

  std::string End() const { return EndOf(pid_); }

  pid_t pid() const { return pid_; }

  UniqueFd Console() const {
    char byte = 0;
    iovec part{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    EXPECT_EQ(::recvmsg(console_.get(), &message, MSG_CMSG_CLOEXEC), 1);
    int fd = -1;
    if (CMSG_FIRSTHDR(&message) != nullptr) {
      std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    }
    return UniqueFd(fd);
  }

 private:
  [[noreturn]] static void Execute(std::vector<std::string>& words, const int (&fds)[6],
                                   int output) {
    constexpr int kFirst = 3;
    constexpr int kHigh = 100;
    for (int i = 0; i < 6; ++i) {
      ::dup2(fds[i], kHigh + i);  // Not of those that there are not.
    }
    ::dup2(output, 1);
    ::dup2(output, 2);
    for (int i = 0; i < 6; ++i) {
      ::dup2(kHigh + i, kFirst + i);
      ::close(kHigh + i);
    }
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(99);
  }

  pid_t pid_ = 0;
  UniqueFd gate_;
  UniqueFd result_;
  UniqueFd console_;
  UniqueFd output_;
};

class InitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "makes containers, which needs root";
    }
  }

  Bundle bundle_;
};

TEST_F(InitTest, MakesWaitsAndEndsAsItsContainer) {
  const Init init(bundle_, {.script = "echo within; exit 9"});
  EXPECT_THAT(init.Answer(), MatchesRegex(R"(\{"made":\{"pid":[0-9]+,"warnings":\[\]\}\})"));
  init.Open();
  EXPECT_EQ(init.Answer(), R"({"started":{}})");
  EXPECT_EQ(init.Output(), "within\n");
  EXPECT_EQ(init.End(), "exit 9");
}

TEST_F(InitTest, RunsFromASealedCopy) {
  Init init(bundle_, {.script = ":"});
  EXPECT_THAT(init.Answer(), StartsWith(R"({"made")"));
  char target[PATH_MAX] = {};
  const std::string link = Format("/proc/{}/exe", init.pid());
  ASSERT_GT(::readlink(link.c_str(), target, sizeof(target) - 1), 0);
  EXPECT_THAT(target, StartsWith("/memfd:"));
  const UniqueFd copy(::open(link.c_str(), O_RDONLY | O_CLOEXEC));
  const int seals = ::fcntl(copy.get(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_WRITE | F_SEAL_SEAL), F_SEAL_WRITE | F_SEAL_SEAL);
  init.CloseGate();
  EXPECT_EQ(init.End(), "exit 126");
}

TEST_F(InitTest, GivesUpWhereTheGateIsClosed) {
  Init init(bundle_, {.script = "echo started"});
  EXPECT_THAT(init.Answer(), StartsWith(R"({"made")"));
  init.CloseGate();
  EXPECT_THAT(init.Answer(), HasSubstr(R"({"error":{"code":"CANCELED")"));
  EXPECT_EQ(init.Output(), "");
  EXPECT_EQ(init.End(), "exit 126");
}

TEST_F(InitTest, SaysWhatFailed) {
  const Init init(bundle_, {.linux_part = R"("sysctl": {"fs.mqueue.none": "1"})", .script = ":"});
  EXPECT_THAT(init.Answer(),
              MatchesRegex(R"(\{"error":\{"code":"NOT_FOUND","errno":2,"message":"set sysctl .*)"));
  EXPECT_EQ(init.End(), "exit 126");
}

TEST_F(InitTest, SaysWhereConfigJsonIsWrong) {
  const Init init(bundle_, {.process = R"("oomScoreAdj": 7000)", .script = ":"});
  EXPECT_THAT(init.Answer(), HasSubstr("/config.json': /process/oomScoreAdj: not between -1000"));
  EXPECT_EQ(init.End(), "exit 126");
}

TEST_F(InitTest, HandsSignalsOn) {
  const Init init(bundle_, {.script = "trap 'echo got; exit 5' TERM; echo ready; "
                                      "while :; do sleep 1000 & wait; done"});
  EXPECT_THAT(init.Answer(), StartsWith(R"({"made")"));
  init.Open();
  EXPECT_EQ(init.Answer(), R"({"started":{}})");
  // By the time that the shell says so, the trap is there; its output is read with the rest.
  ASSERT_EQ(init.ReadLine(), "ready");
  EXPECT_EQ(::kill(init.pid(), SIGTERM), 0);
  EXPECT_EQ(init.ReadLine(), "got");
  EXPECT_EQ(init.End(), "exit 5");
}

TEST_F(InitTest, HandsTheTerminalOver) {
  const Init init(bundle_,
                  {.process = R"("terminal": true)",
                   .script = "tty",
                   .mounts = R"({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                              {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                               "options": ["newinstance", "ptmxmode=0666"]})"});
  EXPECT_THAT(init.Answer(), StartsWith(R"({"made")"));
  const UniqueFd console = init.Console();
  ASSERT_TRUE(static_cast<bool>(console));
  init.Open();
  EXPECT_EQ(Drain(console.get()), "/dev/pts/0\r\n");
  EXPECT_EQ(init.End(), "exit 0");
}

TEST_F(InitTest, LeavesItsContainerToWhoStartedIt) {
  const Init init(bundle_, {.script = "exit 6"}, {"--sibling"});
  const std::string answer = init.Answer();
  ASSERT_THAT(answer, StartsWith(R"({"made":{"pid":)"));
  const pid_t pid = std::stoi(answer.substr(std::strlen(R"({"made":{"pid":)")));
  init.Open();
  EXPECT_EQ(init.Answer(), R"({"started":{}})");
  EXPECT_EQ(init.End(), "exit 0");
  EXPECT_EQ(EndOf(pid), "exit 6");
  EXPECT_GT(::waitpid(-1, nullptr, 0), 0) << "the first child, which has ended by itself";
}

TEST_F(InitTest, JoinsAContainer) {
  const Init init(bundle_, {.top = R"("hostname": "within")", .script = "echo up; sleep 100000"});
  const std::string answer = init.Answer();
  ASSERT_THAT(answer, StartsWith(R"({"made":{"pid":)"));
  init.Open();
  ASSERT_EQ(init.ReadLine(), "up");
  const pid_t pid = std::stoi(answer.substr(std::strlen(R"({"made":{"pid":)")));
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto joins = [&](const Config& process) {
    return Init::Joins{MemoryWith(Bundle::ProcessOf(process)),
                       UniqueFd(::fcntl(pidfd.get(), F_DUPFD_CLOEXEC, 0))};
  };
  const Init exec(bundle_, {.script = ":"}, {},
                  joins({.script = "hostname; echo $$ $PPID; exit 4"}));
  EXPECT_THAT(exec.Answer(), MatchesRegex(R"(\{"made":\{"pid":[0-9]+,"warnings":\[\]\}\})"));
  exec.Open();
  EXPECT_EQ(exec.Answer(), R"({"started":{}})");
  EXPECT_THAT(exec.Output(), MatchesRegex("within\n[0-9]+ 0\n"));
  EXPECT_EQ(exec.End(), "exit 4");
  const Init wrong(bundle_, {.script = ":"}, {}, joins({.script = ":", .cwd = "/absent"}));
  EXPECT_THAT(wrong.Answer(), HasSubstr(R"({"error":{"code":"NOT_FOUND","errno":2,)"));
  EXPECT_EQ(wrong.End(), "exit 126");
  EXPECT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_EQ(init.End(), "exit 137");
  const Init late(bundle_, {.script = ":"}, {}, joins({.script = ":"}));
  EXPECT_THAT(late.Answer(), HasSubstr(R"({"error":{"code":"NOT_FOUND")"));
  EXPECT_EQ(late.End(), "exit 126");
}

TEST_F(InitTest, RefusesHalfAnExec) {
  const Init init(bundle_, {.script = ":"}, {"--init=3"});
  EXPECT_THAT(init.Output(), StartsWith("gantry-init: read arguments: --init and --process are"));
  EXPECT_EQ(init.End(), "exit 126");
}

TEST_F(InitTest, RefusesWhatItDoesNotKnow) {
  const Init init(bundle_, {.script = ":"}, {"--what"});
  EXPECT_THAT(init.Output(),
              StartsWith("gantry-init: read arguments: '--what' is not known\nusage"));
  EXPECT_EQ(init.End(), "exit 126");
}

}  // namespace
}  // namespace gantry::container
