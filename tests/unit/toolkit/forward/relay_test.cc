// SPDX-License-Identifier: Apache-2.0
//
// The process that carries the bytes of a pod's connections, started and recovered.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/forward/protocol.h>
#include <gantry/toolkit/forward/relay.h>

#include "tests/unit/toolkit/forward/forward_fixture.h"
#include "tests/unit/toolkit/names_in.h"

namespace gantry::forward {
namespace {

constexpr std::chrono::seconds kRelayLimit{20};

/// A client, connected by TCP, and whoever serves it.
struct Parties {
  UniqueFd client;
  UniqueFd server;
};

class RelayTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to become nobody";
    }
    program_.reset(open(GANTRY_FORWARD, O_RDONLY | O_CLOEXEC));
    relay_ = forward::Relay::Start(context_, program_, {}, failed()).value();
  }

  forward::Relay::Failed failed() {
    return [this](uint16_t port, int error) {
      context_.Log(LogLevel::kInfo, Format("{}: {}", port, error));
    };
  }

  /// Handed over; the server has not said anything.
  Parties Connect(uint16_t port) {
    Parties parties;
    const auto [listener, listens] = ListenIn(nullptr, "127.0.0.1");
    parties.client = ConnectIn(nullptr, "127.0.0.1", listens).first;
    const UniqueFd accepted = AcceptFrom(listener);
    auto ends = BlockingSocketPair(SOCK_STREAM);
    parties.server = std::move(ends->second);
    EXPECT_TRUE(relay_->Take(accepted, ends->first, port, false));
    return parties;
  }

  Parties Established() {
    Parties parties = Connect(80);
    EXPECT_TRUE(SendText(parties.server, std::string(1, '\0')));
    return parties;
  }

  static void ExpectCarries(const Parties& parties) {
    ASSERT_TRUE(SendText(parties.client, "question"));
    EXPECT_EQ(ReadSome(parties.server, 8), "question");
    ASSERT_TRUE(SendText(parties.server, "answer"));
    EXPECT_EQ(ReadSome(parties.client, 6), "answer");
  }

  FakeSandboxContext context_;
  UniqueFd program_;
  std::unique_ptr<forward::Relay> relay_;
};

TEST_F(RelayTest, CarriesOnceTheServerIsThere) {
  const Parties parties = Connect(80);
  ASSERT_TRUE(SendText(parties.client, "early"));
  ASSERT_TRUE(SendText(parties.server, std::string(1, '\0')));
  EXPECT_EQ(ReadSome(parties.server, 5), "early");
  ExpectCarries(parties);
}

TEST_F(RelayTest, MayDoNoMoreThanItNeeds) {
  // It has heard of a connection: what it takes from itself it has taken by then.
  ExpectCarries(Established());
  const auto process = context_.SpawnedUnder("forward");
  ASSERT_TRUE(process);
  const std::string proc = Format("/proc/{}", process->pid().value);
  const std::string status = ReadFile(proc + "/status", 65536).value_or("");
  EXPECT_NE(status.find("\nNoNewPrivs:\t1\n"), std::string::npos) << status;
  EXPECT_NE(status.find("\nSeccomp:\t2\n"), std::string::npos) << status;
  // Of a process that nobody but root may look into they are root's.
  struct stat info = {};
  ASSERT_EQ(stat((proc + "/fd").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
}

TEST_F(RelayTest, IsNobodyNowhere) {
  ExpectCarries(Established());
  const auto process = context_.SpawnedUnder("forward");
  ASSERT_TRUE(process);
  const std::string proc = Format("/proc/{}", process->pid().value);
  const std::string status = ReadFile(proc + "/status", 65536).value_or("");
  for (const char* line :
       {"\nUid:\t65535\t65535\t65535\t65535\n", "\nGid:\t65535\t65535\t65535\t65535\n",
        "\nGroups:\t \n", "\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n",
        "\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n",
        "\nCapAmb:\t0000000000000000\n"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line << status;
  }
  for (const char* place : {"/root/", "/cwd/"}) {
    const auto names = ListDirectory(proc + place);
    ASSERT_TRUE(names) << names.error().message;
    EXPECT_TRUE(names->empty()) << place;
  }
  for (const char* kind : {"mnt", "net"}) {
    const std::string own = std::filesystem::read_symlink(Format("{}/ns/{}", proc, kind));
    EXPECT_NE(own, std::filesystem::read_symlink(Format("/proc/self/ns/{}", kind)).string());
  }
  // A loopback, and the two lines above it.
  const std::string devices = ReadFile(proc + "/net/dev", 65536).value_or("");
  EXPECT_EQ(std::ranges::count(devices, '\n'), 3) << devices;
  // Beside the connection, which has ended or not, the engine's socket is all it has open.
  for (const std::string& fd : NamesIn(proc + "/fd")) {
    const std::string what = std::filesystem::read_symlink(Format("{}/fd/{}", proc, fd));
    EXPECT_TRUE(what.starts_with("socket:")) << what;
  }
}

TEST_F(RelayTest, PassesEachEndByItself) {
  const Parties parties = Established();
  ASSERT_TRUE(SendText(parties.client, "all of it"));
  ASSERT_EQ(shutdown(parties.client.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(parties.server), "all of it");
  ASSERT_TRUE(SendText(parties.server, "answer"));
  ASSERT_EQ(shutdown(parties.server.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(parties.client), "answer");
}

TEST_F(RelayTest, ResetsAndTellsWhatCouldNotBeConnected) {
  const Parties parties = Connect(8080);
  ASSERT_TRUE(SendText(parties.server, std::string(1, static_cast<char>(ECONNREFUSED))));
  int error = 0;
  EXPECT_EQ(ReadAll(parties.client, &error), "");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_TRUE(context_.WaitForLog(Format("8080: {}", ECONNREFUSED)));
}

TEST_F(RelayTest, ResetsWhatEndsWithoutAWord) {
  Parties parties = Connect(8080);
  parties.server.reset();
  int error = 0;
  EXPECT_EQ(ReadAll(parties.client, &error), "");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_TRUE(context_.WaitForLog(Format("8080: {}", ECONNABORTED)));
}

TEST_F(RelayTest, LetsTheServerKnowThatAClientLeftWhileItWaited) {
  Parties parties = Connect(8080);
  const linger at_once = {1, 0};
  ASSERT_EQ(setsockopt(parties.client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  parties.client.reset();
  EXPECT_EQ(ReadAll(parties.server), "");
}

TEST_F(RelayTest, EndsAConnectionWhoseServerIsGone) {
  Parties parties = Established();
  ASSERT_TRUE(SendText(parties.server, "last words"));
  parties.server.reset();
  EXPECT_EQ(ReadAll(parties.client), "last words");
}

TEST_F(RelayTest, CarriesAsManyAsItMayAndResetsTheNext) {
  std::vector<Parties> all;
  for (int i = 0; i < forward::kMaxConnections; ++i) {
    all.push_back(Established());
    ExpectCarries(all.back());
  }
  const Parties further = Connect(99);
  int error = 0;
  EXPECT_EQ(ReadAll(further.client, &error), "");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_TRUE(context_.WaitForLog(Format("99: {}", EUSERS)));
  for (const Parties& one : all) {
    ExpectCarries(one);
  }
  // A place that was given up is another's.
  ASSERT_EQ(shutdown(all.back().client.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(all.back().server), "");
  all.back().server.reset();
  EXPECT_EQ(ReadAll(all.back().client), "");
  all.pop_back();
  all.push_back(Established());
  ExpectCarries(all.back());
}

TEST_F(RelayTest, GoesOnWithoutTheEngineAndForTheNext) {
  const Parties before = Established();
  ExpectCarries(before);
  relay_.reset();
  ExpectCarries(before);
  context_.RestartEngine();
  relay_ = forward::Relay::Recover(context_, failed());
  ASSERT_TRUE(relay_);
  ExpectCarries(before);
  ExpectCarries(Established());
}

TEST_F(RelayTest, TellsThatItHasEnded) {
  const auto process = context_.SpawnedUnder("forward");
  ASSERT_TRUE(process);
  ASSERT_TRUE(process->Signal(SIGKILL));
  ASSERT_TRUE(process->Wait(kRelayLimit));
  const auto ends = BlockingSocketPair(SOCK_STREAM);
  EXPECT_EQ(relay_->Take(ends->first, ends->second, 80, false).error().code, Code::kUnavailable);
}

TEST_F(RelayTest, EndsWithThePod) {
  const Parties parties = Established();
  ASSERT_TRUE(relay_->End(context_, kRelayLimit));
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_TRUE(context_.StoredNames().empty());
  EXPECT_EQ(ReadAll(parties.client), "");
  EXPECT_TRUE(relay_->End(context_, kRelayLimit)) << "once more is no error";
  context_.RestartEngine();
  EXPECT_EQ(forward::Relay::Recover(context_, failed()), nullptr);
}

TEST_F(RelayTest, EndsWhenNobodyCanReachIt) {
  relay_.reset();
  const auto process = context_.SpawnedUnder("forward");
  EXPECT_FALSE(process->Ended());
  context_.Drop("forward-relay");
  EXPECT_EQ(process->Wait(kRelayLimit).value_or(WaitStatus{-1, 0}).code(), 0U);
}

}  // namespace
}  // namespace gantry::forward
