// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/confine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry::wasm::fetch {
namespace {

constexpr long kPage = 4096;

/// What `script` gives, in a process that has given its calls up.
std::string Confined(const std::function<std::string()>& script) {
  auto ends = MakeBlockingPipe();
  if (!ends) {
    return "no pipe";
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    const Status confined = GiveUpCalls();
    const std::string said = confined ? script() : confined.error().message;
    ::_exit(::write(ends->second.get(), said.data(), said.size()) < 0 ? 1 : 0);
  }
  ends->second.reset();
  std::string said;
  std::array<char, 256> part{};
  for (ssize_t n = 1; n > 0;) {
    n = ::read(ends->first.get(), part.data(), part.size());
    said.append(part.data(), n > 0 ? static_cast<size_t>(n) : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? said : said + " and ended by " + std::to_string(status);
}

/// Those of the calls that are not answered as absent.
std::string Answered(const std::vector<std::pair<const char*, std::function<long()>>>& calls) {
  std::string out;
  for (const auto& [name, call] : calls) {
    errno = 0;
    const long answer = call();
    out += answer < 0 && errno == ENOSYS ? "" : std::string(name) + " ";
  }
  return out;
}

TEST(GiveUpCalls, TakesTheFilesOfTheNodeAway) {
  EXPECT_EQ(Confined([] {
              return Answered({
                  {"open", [] { return ::open("/etc/passwd", O_RDONLY | O_CLOEXEC); }},
                  {"create", [] { return ::open("/nowhere/a", O_CREAT | O_CLOEXEC, 0600); }},
                  {"stat",
                   [] {
                     struct stat info{};
                     return ::stat("/etc", &info);
                   }},
                  {"mkdir", [] { return ::mkdir("/nowhere/a", 0700); }},
                  {"unlink", [] { return ::unlink("/nowhere/a"); }},
                  {"rename", [] { return ::rename("/nowhere/a", "/nowhere/ane"); }},
                  {"chmod", [] { return ::chmod("/nowhere/a", 0700); }},
                  {"memfd", [] { return ::memfd_create("x", MFD_CLOEXEC); }},
              });
            }),
            "");
}

TEST(GiveUpCalls, TakesProgramsAndProcessesAway) {
  EXPECT_EQ(Confined([] {
              return Answered({
                  {"fork", [] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
                  {"clone3", [] { return ::syscall(SYS_clone3, nullptr, 0); }},
                  {"execve",
                   [] {
                     char* const none[] = {nullptr};
                     return ::execve("/bin/true", none, none);
                   }},
                  {"kill", [] { return ::kill(::getpid(), 0); }},
                  {"ptrace", [] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }},
                  {"unshare", [] { return ::unshare(CLONE_NEWUSER); }},
                  {"tcp", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }},
                  {"netlink", [] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }},
                  {"code",
                   [] {
                     void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_EXEC,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                     return page == MAP_FAILED ? -1L : 0L;
                   }},
                  {"to code",
                   [] {
                     void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                     return ::mprotect(page, kPage, PROT_READ | PROT_EXEC);
                   }},
              });
            }),
            "");
}

TEST(GiveUpCalls, LeavesThreadsAndUnixSockets) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has calls of its own for a thread";
#endif
  EXPECT_EQ(Confined([] {
              std::string said;
              std::thread([&] {
                said = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? "no socket" : "both";
              }).join();
              return said;
            }),
            "both");
}

/// Libraries may have made some by then.
TEST(GiveUpCalls, HoldsForTheThreadsThatThereAre) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has calls of its own for a thread";
#endif
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto ends = MakeBlockingPipe();
    bool held = false;
    std::thread before([&] {
      char byte = 0;
      held = ::read(ends->first.get(), &byte, 1) == 1 &&
             ::open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOSYS;
    });
    const bool told = GiveUpCalls().has_value() && ::write(ends->second.get(), "x", 1) == 1;
    before.join();
    ::_exit(told && held ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gantry::wasm::fetch
