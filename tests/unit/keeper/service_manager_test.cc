// SPDX-License-Identifier: Apache-2.0
//
// gantry-keeper as systemd starts it: what it tells, and over a change of its program.
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/link/channel.h"
#include "core/os/spawn.h"
#include "tests/unit/keeper/keeper_process.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;

constexpr int kDeadlineMs = 20'000;

/// The place where a service manager is told.
class Manager {
 public:
  explicit Manager(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    const bool is_abstract = name.starts_with('@');
    address.sun_path[0] = is_abstract ? '\0' : name[0];
    const size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1);
    EXPECT_EQ(
        bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)),
        0);
  }

  /// What it was told already; empty: nothing more.
  std::string Read() const {
    char buffer[4096];
    const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), 0);
    return {buffer, got > 0 ? static_cast<size_t>(got) : 0};
  }

  /// The next one that it is told; empty where it is told nothing.
  std::string Told() const {
    pollfd wanted{fd_.get(), POLLIN, 0};
    return poll(&wanted, 1, kDeadlineMs) == 1 ? Read() : "";
  }

  void ForgetAll() const {
    while (!Read().empty()) {
    }
  }

  /// Whether it comes, whatever comes before.
  bool IsTold(const std::string& what) const {
    std::string told = Told();
    while (!told.empty() && told != what) {
      told = Told();
    }
    return told == what;
  }

 private:
  UniqueFd fd_;
};

class KeeperServiceManager : public KeeperProcessTest {
 protected:
  /// An engine that leaves its environment in a file.
  std::string Engine() {
    std::string path = dir_.path() + "/engine";
    EXPECT_TRUE(ReplaceFile(path,
                            "#!/bin/sh\nenv > " + EnvironmentFile() + ".part && mv " +
                                EnvironmentFile() + ".part " + EnvironmentFile() + "\n",
                            0755));
    return path;
  }

  std::string EnvironmentFile() const { return dir_.path() + "/environment"; }

  void Start(std::vector<std::string> environment) {
    environment.emplace_back("PATH=/usr/bin:/bin");
    StartKeeper(Engine(), std::move(environment));
  }
};

TEST_F(KeeperServiceManager, IsToldOfStartAndEnd) {
  const Manager manager(dir_.path() + "/notify");
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/notify"});
  EXPECT_EQ(manager.Told(), "READY=1");
  EXPECT_TRUE(Ask<link::KeeperStatus>(link::Query{}));
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGTERM));
  EXPECT_EQ(manager.Told(), "STOPPING=1") << "no watchdog is to be told of a turning loop";
}

TEST_F(KeeperServiceManager, MayListenAtAnAbstractName) {
  const std::string name = "@gantry-test-" + std::to_string(getpid());
  const Manager manager(name);
  Start({"NOTIFY_SOCKET=" + name});
  EXPECT_EQ(manager.Told(), "READY=1");
}

TEST_F(KeeperServiceManager, IsToldAgainAndAgainOverChangesOfTheProgram) {
  const Manager manager(dir_.path() + "/notify");
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/notify", "WATCHDOG_USEC=90000"});
  EXPECT_EQ(manager.Told(), "READY=1");
  EXPECT_EQ(manager.Told(), "WATCHDOG=1");
  EXPECT_EQ(manager.Told(), "WATCHDOG=1");
  for (uint64_t i = 1; i <= 2; ++i) {
    const auto upgraded = Ask<link::KeeperUpgraded>(link::UpgradeKeeper{GANTRY_KEEPER});
    ASSERT_TRUE(upgraded) << upgraded.error().message;
    manager.ForgetAll();
    EXPECT_TRUE(manager.IsTold("WATCHDOG=1"));
    EXPECT_TRUE(manager.IsTold("WATCHDOG=1"));
    const auto status = Ask<link::KeeperStatus>(link::Query{});
    ASSERT_TRUE(status);
    EXPECT_EQ(status->keeper_upgrades, i);
  }
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGTERM));
  EXPECT_TRUE(manager.IsTold("STOPPING=1"));
}

TEST_F(KeeperServiceManager, OfAStoppedKeeperIsToldNothing) {
  const Manager manager(dir_.path() + "/notify");
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/notify", "WATCHDOG_USEC=90000"});
  ASSERT_TRUE(manager.IsTold("WATCHDOG=1"));
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGSTOP));
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(keeper_.process.pid), &info, WSTOPPED), 0);
  manager.ForgetAll();
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGABRT));
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGCONT));
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(keeper_.process.pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGABRT) << "the watchdog's signal ends it";
  EXPECT_EQ(manager.Read(), "");
}

TEST_F(KeeperServiceManager, IsNotTheEngines) {
  const Manager manager(dir_.path() + "/notify");
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/notify", "WATCHDOG_USEC=90000", "LISTEN_FDS=1",
         "LISTEN_PID=1", "LISTEN_FDNAMES=a", "OTHER=stays"});
  ASSERT_EQ(manager.Told(), "READY=1");
  link::Announce announce;
  announce.id = "c1";
  announce.ns = "default";
  ASSERT_TRUE(Ask<link::Announced>(announce));
  auto environment = ReadFile(EnvironmentFile(), 65536);
  while (!environment && manager.Told() == "WATCHDOG=1") {
    environment = ReadFile(EnvironmentFile(), 65536);
  }
  ASSERT_TRUE(environment);
  EXPECT_THAT(*environment, testing::HasSubstr("OTHER=stays"));
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_"}) {
    EXPECT_THAT(*environment, testing::Not(testing::HasSubstr(name)));
  }
}

TEST_F(KeeperServiceManager, OfAnotherProcessHasNoWatchdogHere) {
  const Manager manager(dir_.path() + "/notify");
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/notify", "WATCHDOG_USEC=90000", "WATCHDOG_PID=1"});
  EXPECT_EQ(manager.Told(), "READY=1");
  EXPECT_TRUE(Ask<link::KeeperStatus>(link::Query{}));
  ASSERT_TRUE(SendSignal(keeper_.pidfd.get(), SIGTERM));
  EXPECT_EQ(manager.Told(), "STOPPING=1");
}

TEST_F(KeeperServiceManager, ThatHasGoneIsNoMatter) {
  Start({"NOTIFY_SOCKET=" + dir_.path() + "/nobody", "WATCHDOG_USEC=90000"});
  EXPECT_TRUE(Ask<link::KeeperStatus>(link::Query{}));
}

}  // namespace
}  // namespace gantry::keeper
