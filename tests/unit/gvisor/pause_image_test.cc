// SPDX-License-Identifier: Apache-2.0
//
// The root of a pod without a pause container, and its program, which runs on the host as it
// does in a sentry.
#include "plugins/gvisor/pause/pause_image.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/toolkit/image/erofs_reader.h"

namespace gantry::gvisor {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::Key;

constexpr size_t kMostBytes = 1 << 20;

std::string ImageBytes(const UniqueFd& fd) {
  std::string bytes(kMostBytes, '\0');
  const ssize_t got = pread(fd.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

TEST(PauseImage, HoldsTheProgramAndWhatIsMountedUpon) {
  const auto fd = PauseImage();
  ASSERT_TRUE(fd) << fd.error().message;
  const ErofsReader reader(ImageBytes(*fd));
  const auto root = reader.List(*reader.Inode(reader.superblock().root_nid));
  ASSERT_TRUE(root);
  ASSERT_THAT(*root, ElementsAre(Key("."), Key(".."), Key("dev"), Key("pause"), Key("proc"),
                                 Key("sys"), Key("tmp")));
  const auto inode = reader.Inode(root->at("pause").nid);
  ASSERT_TRUE(inode);
  EXPECT_EQ(inode->mode, S_IFREG | 0755);
  const auto program = ReadFile(GANTRY_SENTRY_PAUSE, kMostBytes);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(reader.Content(*inode), *program);
  EXPECT_LT(program->size(), 4096U);
}

TEST(PauseImage, CannotBeChangedByWhoeverHasIt) {
  const auto fd = PauseImage();
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_EQ(fcntl(fd->get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(fcntl(fd->get(), F_GETFD), FD_CLOEXEC);
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  EXPECT_EQ(fcntl(fd->get(), F_GET_SEALS) & kSeals, kSeals);
  const UniqueFd writable(open(Format("/proc/self/fd/{}", fd->get()).c_str(), O_RDWR | O_CLOEXEC));
  if (writable) {
    EXPECT_EQ(pwrite(writable.get(), "x", 1, 0), -1);
    EXPECT_EQ(errno, EPERM);
  }
}

TEST(PauseImage, IsMappedAsASentryMapsIt) {
  const auto fd = PauseImage();
  ASSERT_TRUE(fd) << fd.error().message;
  const std::string bytes = ImageBytes(*fd);
  void* const mapped = mmap(nullptr, bytes.size(), PROT_READ | PROT_EXEC, MAP_SHARED, fd->get(), 0);
  ASSERT_NE(mapped, MAP_FAILED) << strerror(errno);
  EXPECT_EQ(memcmp(mapped, bytes.data(), bytes.size()), 0);
  munmap(mapped, bytes.size());
}

TEST(PauseImage, IsTheSameFileForAll) {
  const auto one = PauseImage();
  const auto other = PauseImage();
  ASSERT_TRUE(one && other);
  struct stat one_info = {};
  struct stat other_info = {};
  ASSERT_EQ(fstat(one->get(), &one_info), 0);
  ASSERT_EQ(fstat(other->get(), &other_info), 0);
  EXPECT_EQ(one_info.st_ino, other_info.st_ino);
  // But not the same open file: the place in it is nobody else's.
  EXPECT_EQ(lseek(one->get(), 7, SEEK_SET), 7);
  EXPECT_EQ(lseek(other->get(), 0, SEEK_CUR), 0);
}

/// A child of the test; killed at the end if it is still there.
class Child {
 public:
  /// `blocked` signals wait for the program; standard input and output are `in` and `out`.
  Child(std::vector<const char*> argv, const std::vector<int>& blocked, int in = 0, int out = 1) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t mask;
    sigemptyset(&mask);
    for (const int signal : blocked) {
      sigaddset(&mask, signal);
    }
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    argv.push_back(nullptr);
    std::array<char*, 1> no_environment = {nullptr};
    failed_ = posix_spawn(&pid_, argv[0], &files, &attributes,
                          const_cast<char* const*>(argv.data()), no_environment.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ~Child() {
    if (failed_ == 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
  }

  void Signal(int signal) const { kill(pid_, signal); }

  std::string ProcStatus() const {
    return ReadFile(Format("/proc/{}/status", pid_), kMostBytes).value_or(std::string());
  }

  /// What wait(2) gives.
  int Wait() {
    int status = -1;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    failed_ = ECHILD;
    return status;
  }

 private:
  int failed_ = 0;
  pid_t pid_ = -1;
};

bool Comes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

TEST(PauseProgram, EndsWithStatusZeroWhenToldTo) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Child pause({GANTRY_SENTRY_PAUSE}, {signal});
    pause.Signal(signal);
    EXPECT_EQ(pause.Wait(), 0);
  }
}

TEST(PauseProgram, EndsForNoOtherSignal) {
  Child pause({GANTRY_SENTRY_PAUSE}, {SIGHUP, SIGTERM});
  pause.Signal(SIGHUP);
  // Waits to fetch: blocked are all but SIGKILL and SIGSTOP, and those that it waits for.
  EXPECT_TRUE(Comes([&] { return pause.ProcStatus().contains("SigBlk:\tfffffffffffabefd"); }))
      << pause.ProcStatus();
  for (const int signal : {SIGUSR1, SIGQUIT, SIGPIPE, SIGALRM, SIGCHLD}) {
    pause.Signal(signal);
  }
  pause.Signal(SIGTERM);
  EXPECT_EQ(pause.Wait(), 0);
}

TEST(PauseProgram, SaysWhyItCannotNameThePod) {
  // Longer than a host name may be: refused before and after it is asked who asks.
  const std::string name(65, 'n');
  Child pause({GANTRY_SENTRY_PAUSE, name.c_str()}, {});
  EXPECT_THAT(WEXITSTATUS(pause.Wait()), AnyOf(EINVAL, EPERM));
}

TEST(PauseProgram, ReapsItsChildren) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  const UniqueFd in_reader(in[0]);
  UniqueFd in_writer(in[1]);
  const UniqueFd out_reader(out[0]);
  const UniqueFd out_writer(out[1]);
  // One child that has ended by the time the program begins, and one that ends at the end of
  // its input. Not descriptor 0: a shell gives what it does not wait for an empty one.
  Child pause({"/bin/sh", "-c",
               "exec 3<&0 </dev/null; true & cat <&3 & echo $!; exec 3<&-; "
               "exec " GANTRY_SENTRY_PAUSE},
              {SIGTERM}, in_reader.get(), out_writer.get());
  std::array<char, 16> line{};
  ASSERT_GT(read(out_reader.get(), line.data(), line.size() - 1), 0);
  const pid_t child = static_cast<pid_t>(strtol(line.data(), nullptr, 10));
  ASSERT_GT(child, 0);
  EXPECT_EQ(kill(child, 0), 0);
  in_writer.reset();
  EXPECT_TRUE(Comes([&] { return kill(child, 0) != 0 && errno == ESRCH; }));
  pause.Signal(SIGTERM);
  EXPECT_EQ(pause.Wait(), 0);
}

}  // namespace
}  // namespace gantry::gvisor
