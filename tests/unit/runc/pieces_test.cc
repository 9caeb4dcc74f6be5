// SPDX-License-Identifier: Apache-2.0
//
// The parts that touch the kernel: the console's socket, the fifo at which a created container
// waits, the questions of `doctor`.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/deadline.h>
#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "plugins/runc/console.h"
#include "plugins/runc/exec_fifo.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

Deadline Now() { return std::chrono::steady_clock::now(); }

/// Connects to a socket in a directory and sends a descriptor, or nothing.
void SendFd(const std::string& directory, const std::string& name, int fd) {
  const UniqueFd dir(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = Format("/proc/self/fd/{}/{}", dir.get(), name);
  memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (fd < 0) {
    return;
  }
  char byte = 'x';
  iovec vector = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  ASSERT_EQ(sendmsg(connection.get(), &message, 0), 1);
}

TEST(ConsoleSocket, ReceivesATerminalInADeepBundle) {
  const TempDir dir;
  const std::string bundle = dir / std::string(100, 'a') + "/" + std::string(100, 'b');
  MakeDir(bundle);
  {
    auto console = ConsoleSocket::Listen(bundle, "tty");
    ASSERT_TRUE(console) << console.error().message;
    int master = -1;
    int slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    const UniqueFd sent(master);
    const UniqueFd other(slave);
    SendFd(bundle, "tty", master);
    const auto received = ReceiveTerminal(console->listener());
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_NE(fcntl(received->get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_FALSE(IsThere(bundle + "/tty"));
}

TEST(ConsoleSocket, GivesTheTerminalAgainAndAgain) {
  const TempDir dir;
  auto console = ConsoleSocket::Listen(dir.path(), "tty");
  ASSERT_TRUE(console);
  int master = -1;
  int slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const UniqueFd sent(master);
  const UniqueFd other(slave);
  SendFd(dir.path(), "tty", master);
  const UniqueFd connection(accept4(console->listener().get(), nullptr, nullptr, SOCK_CLOEXEC));
  for (int time = 0; time < 2; ++time) {
    const auto received = ReceiveTerminal(connection);
    ASSERT_TRUE(received) << received.error().message;
    EXPECT_STREQ(ptsname(received->get()), ptsname(master));
  }
}

TEST(ConsoleSocket, RefusesWhatIsNoTerminal) {
  const TempDir dir;
  auto console = ConsoleSocket::Listen(dir.path(), "tty");
  ASSERT_TRUE(console);
  EXPECT_THAT(ReceiveTerminal(console->listener()).error().message, HasSubstr("sent none"));
  SendFd(dir.path(), "tty", -1);
  EXPECT_EQ(ReceiveTerminal(console->listener()).error().code, Code::kInternal);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SendFd(dir.path(), "tty", null.get());
  EXPECT_EQ(ReceiveTerminal(console->listener()).error().code, Code::kInternal);
}

/// Of a thread of this process.
bool IsAsleep(pid_t thread) {
  const auto status = ReadFile(Format("/proc/self/task/{}/status", thread), 4096);
  return status && status->contains("State:\tS");
}

class Fifo : public testing::Test {
 protected:
  Fifo() { mkfifo(path_.c_str(), 0600); }

  FakeSandboxContext context_{Orphans::kAdopted};
  TempDir dir_;
  std::string path_ = dir_ / "exec.fifo";
};

TEST_F(Fifo, ReleasesAnInitThatReads) {
  // As crun: the init has it open before anyone writes.
  const UniqueFd keep(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto init = RunShell("exec sleep 1000");
  const Status released = ReleaseInit(path_, *init, Soon(), {});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_FALSE(IsThere(path_));
  char byte = 1;
  ASSERT_EQ(read(keep.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 0);
}

TEST_F(Fifo, ReleasesAnInitThatWrites) {
  auto init = RunShell("printf 0 > " + path_ + "; exit 7");
  const Status released = ReleaseInit(path_, *init, Soon(), {});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_FALSE(IsThere(path_));
  EXPECT_EQ(init->Wait(std::chrono::seconds(10))->code(), 7U);
}

TEST_F(Fifo, ReleasesAnInitWhoseWriterHasGone) {
  // As crun, which spins then.
  auto init = RunShell("exec 3<" + path_ + "; until dd bs=1 count=1 <&3 >" + (dir_ / "byte") +
                       " 2>/dev/null && [ -s " + (dir_ / "byte") + " ]; do :; done; exit 7");
  UniqueFd writer;
  while (!writer) {
    writer.reset(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  }
  writer.reset();
  const Status released = ReleaseInit(path_, *init, Soon(), {.again = true});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(init->Wait(std::chrono::seconds(10))->code(), 7U);
}

TEST_F(Fifo, KeepsAReaderForAnInitThatWrites) {
  auto init = RunShell("printf 0 > " + path_ + "; exit 7");
  UniqueFd kept;
  ReleaseAids first;
  // The engine dies when the reader is kept.
  first.keep_reader = [&](const UniqueFd& reader) -> Status {
    kept = reader.Duplicate().value();
    return Fail(Code::kUnavailable, "it has died");
  };
  EXPECT_FALSE(ReleaseInit(path_, *init, Soon(), first));
  const Status released =
      ReleaseInit(path_, *init, Soon(), {.again = true, .reader = std::move(kept)});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(init->Wait(std::chrono::seconds(10))->code(), 7U);
}

TEST_F(Fifo, TakesNoHangUpForAnEnd) {
  const UniqueFd kept(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // From here on the fifo is hung up: nobody writes any more. A poll sees that, too, while an
  // init opens it that lives on.
  UniqueFd(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).reset();
  auto init = RunShell("exec sleep 1000");
  std::atomic<pid_t> waiter = 0;
  Status released;
  std::thread release([&] {
    waiter = gettid();
    released =
        ReleaseInit(path_, *init, Soon(), {.again = true, .reader = kept.Duplicate().value()});
    waiter = -1;
  });
  // Asleep, it has seen the hang-up.
  for (pid_t thread = 0; thread >= 0 && !IsAsleep(thread); thread = waiter) {
  }
  const UniqueFd writer(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(write(writer.get(), "0", 1), 1);
  release.join();
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_FALSE(IsThere(path_));
}

TEST_F(Fifo, KeepsWhatAnInitThatHasEndedWrote) {
  auto init = RunShell("printf 0 > " + path_ + "; exit 7");
  UniqueFd kept(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(init->Wait(std::chrono::seconds(10))->code(), 7U);
  // The engine may die after it has seen the byte, too.
  for (int time = 0; time < 2; ++time) {
    const Status released =
        ReleaseInit(path_, *init, Soon(), {.again = true, .reader = kept.Duplicate().value()});
    ASSERT_TRUE(released) << released.error().message;
    EXPECT_FALSE(IsThere(path_));
  }
}

/// Writes its byte and ends when it is first asked whether it has.
class InitThatEndsNow : public FakeHostProcess {
 public:
  InitThatEndsNow(const ProcessId& process, std::string fifo)
      : FakeHostProcess(process, OpenPidfd(process).value()), fifo_(std::move(fifo)) {}

  std::optional<WaitStatus> Ended() const override {
    const UniqueFd writer(open(fifo_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_EQ(write(writer.get(), "0", 1), 1);
    return WaitStatus();
  }

 private:
  const std::string fifo_;
};

TEST_F(Fifo, LooksAgainForTheByteOfAnInitThatHasJustEnded) {
  const UniqueFd kept(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  const InitThatEndsNow init({pid, StartTimeOf({pid}).value()}, path_);
  const Status released =
      ReleaseInit(path_, init, Soon(), {.again = true, .reader = kept.Duplicate().value()});
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_FALSE(IsThere(path_));
}

TEST_F(Fifo, NoticesThatTheInitEnds) {
  auto init = RunShell("exit 1");
  EXPECT_EQ(ReleaseInit(path_, *init, Soon(), {}).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(init->Wait(std::chrono::seconds(10)));
  EXPECT_EQ(ReleaseInit(path_, *init, Soon(), {}).error().code, Code::kFailedPrecondition);
}

TEST_F(Fifo, GivesUpAtTheDeadline) {
  auto init = RunShell("exec sleep 1000");
  EXPECT_EQ(ReleaseInit(path_, *init, Now(), {}).error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(ReleaseInit(dir_ / "none", *init, Soon(), {}).error().code, Code::kNotFound);
}

TEST_F(Fifo, KnowsWhoHoldsIt) {
  EXPECT_FALSE(*HoldsFifo({getpid()}, path_));
  const UniqueFd held(open(path_.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_TRUE(*HoldsFifo({getpid()}, path_));
}

}  // namespace
}  // namespace gantry::runc
