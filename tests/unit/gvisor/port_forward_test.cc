// SPDX-License-Identifier: Apache-2.0
//
// Forwarding as a whole. The sentry is a fake that executes what it is given; the pod's inside
// is another network namespace.
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/forward/port_forward.h>

#include "core/os/fs.h"
#include "plugins/gvisor/forward/sentry_ports.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"
#include "tests/unit/toolkit/forward/forward_fixture.h"

namespace gantry::gvisor {
namespace {

using forward::AcceptFrom;
using forward::ConnectIn;
using forward::ListenIn;
using forward::NetnsWithLoopback;
using forward::PathOfFd;
using forward::PortForward;
using forward::ReadAll;
using forward::ReadSome;
using forward::SendText;
using testing::ElementsAre;
using testing::IsEmpty;
using urpc::FakeAnswer;
using urpc::Json;

/// Executes programs in its own network.
class ExecutingSentry {
 public:
  explicit ExecutingSentry(const std::string& socket)
      : server_(socket, [this](const Json& request, std::vector<UniqueFd>& fds) {
          return Answer(request, fds);
        }) {}

  const UniqueFd& inside() const { return inside_; }

  /// The first requests, when that many have come.
  std::vector<Json> Asked(size_t count) {
    std::unique_lock lock(mutex_);
    asking_.wait(lock, [&] { return asked_.size() >= count; });
    return asked_;
  }

  /// Of what it has executed.
  size_t Alive() {
    const std::lock_guard lock(mutex_);
    return context_.Alive();
  }

  /// Others that it names when it is asked for processes.
  void List(const Json& line) {
    const std::lock_guard lock(mutex_);
    others_.push_back(line);
  }

  /// No answer comes from now on.
  void Hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }

  /// Of the last program that it got; -1: it could write it.
  int Seals() {
    const std::lock_guard lock(mutex_);
    return seals_;
  }

  void Refuse(const std::string& words) {
    const std::lock_guard lock(mutex_);
    refusal_ = words;
  }

 private:
  FakeAnswer Answer(const Json& request, std::vector<UniqueFd>& fds) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(request);
    asking_.notify_all();
    if (hangs_) {
      return {};
    }
    if (!refusal_.empty()) {
      return FakeAnswer::Refusing(refusal_);
    }
    const std::string method = request["method"];
    if (method == "containerManager.Processes") {
      return FakeAnswer::Of(Lines());
    }
    if (method == "containerManager.Signal") {
      return FakeAnswer::Of(End(request["arg"]));
    }
    return method == "containerManager.ExecuteAsync" && fds.size() == 2 ? Execute(request, fds)
                                                                        : FakeAnswer::Of(0);
  }

  FakeAnswer Execute(const Json& request, std::vector<UniqueFd>& fds) {
    SpawnRequest spawn;
    spawn.argv = request["arg"]["argv"].get<std::vector<std::string>>();
    spawn.fds.emplace_back(std::move(fds[0]), 0);
    const bool is_for_reading = (fcntl(fds[1].get(), F_GETFL) & O_ACCMODE) == O_RDONLY;
    seals_ = is_for_reading ? fcntl(fds[1].get(), F_GET_SEALS) : -1;
    spawn.program = std::move(fds[1]);
    spawn.namespaces.emplace_back(inside_.Duplicate().value(), CLONE_NEWNET);
    const auto process = context_.Spawn(std::move(spawn));
    return process ? FakeAnswer::Of((*process)->pid().value)
                   : FakeAnswer::Refusing(process.error().message);
  }

  Json Lines() const {
    Json lines = others_;
    for (const auto& process : context_.spawned) {
      if (!process->Ended()) {
        lines.push_back({{"pid", process->pid().value},
                         {"ppid", 0},
                         {"uid", 65534},
                         {"cmd", "gantry-forward"}});
      }
    }
    return lines;
  }

  /// At once: who waits for it then is told the truth.
  int End(const Json& arg) const {
    constexpr std::chrono::seconds kEndLimit{20};
    for (const auto& process : context_.spawned) {
      if (process->pid().value == arg["PID"]) {
        IgnoreError(process->Signal(arg["Signo"].get<int>()), "it may have ended by itself");
        EXPECT_TRUE(process->Wait(kEndLimit));
      }
    }
    return 0;
  }

  const UniqueFd inside_ = NetnsWithLoopback();
  FakeSandboxContext context_;
  std::mutex mutex_;
  std::condition_variable asking_;
  std::vector<Json> asked_;
  Json others_ = Json::array();
  std::string refusal_;
  int seals_ = -1;
  bool hangs_ = false;
  urpc::FakeSentry server_;
};

class PortForwardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make network namespaces";
    }
    if (const Status can = forward::CanLeadLoopback(); !can) {
      GTEST_SKIP() << can.error().message;
    }
    auto begun = PortForward::Begin(context_, PathOfFd(pod_), Request());
    ASSERT_TRUE(begun) << begun.error().message;
    forward_ = *begun;
  }

  SentryPorts Ports() {
    return {context_,
            std::make_shared<Sentry>(context_, "p1", socket_,
                                     [](const SentryState&) { return Status(); }),
            "p1", kLimit};
  }

  forward::PortForwardRequest Request() {
    forward::PortForwardRequest wanted;
    wanted.connect = [ports = Ports()](uint16_t port, const UniqueFd& program) {
      return ports.Connect(port, program);
    };
    wanted.program = GANTRY_FORWARD;
    return wanted;
  }

  UniqueFd Connect(uint16_t port) { return ConnectIn(&pod_, "127.0.0.1", port).first; }

  /// By a client's connection, to a server that is there.
  void ExpectReaches(uint16_t port) {
    const auto [listener, at] = ListenIn(&sentry_.inside(), "127.0.0.1", port);
    ASSERT_TRUE(listener);
    const UniqueFd client = Connect(at);
    ASSERT_TRUE(client);
    const UniqueFd server = AcceptFrom(listener);
    ASSERT_TRUE(SendText(client, "question"));
    EXPECT_EQ(ReadSome(server, 8), "question");
    ASSERT_TRUE(SendText(server, "answer"));
    EXPECT_EQ(ReadSome(client, 6), "answer");
  }

  void ExpectReset(uint16_t port) {
    const UniqueFd client = Connect(port);
    ASSERT_TRUE(client);
    int error = 0;
    EXPECT_EQ(ReadAll(client, &error), "");
    EXPECT_EQ(error, ECONNRESET);
  }

  static constexpr std::chrono::seconds kLimit{20};
  os::TempDir folder_ = os::TempDir::Create().value();
  const std::string socket_ = folder_.path() + "/sentry.sock";
  const UniqueFd pod_ = NetnsWithLoopback();
  ExecutingSentry sentry_{socket_};
  FakeSandboxContext context_;
  std::shared_ptr<PortForward> forward_;
};

TEST_F(PortForwardTest, ReachesThePortThatWasAskedFor) {
  ExpectReaches(8080);
  ExpectReaches(8081);
  ExpectReaches(8080);
}

TEST_F(PortForwardTest, ExecutesInTheRootWithoutPrivileges) {
  ExpectReaches(8080);
  const std::vector<Json> asked = sentry_.Asked(2);
  const Json& arg = asked[0]["arg"];
  EXPECT_EQ(asked[0]["method"], "containerManager.ExecuteAsync");
  EXPECT_EQ(arg["ContainerID"], "p1");
  EXPECT_EQ(arg["argv"], Json::parse(R"(["gantry-forward","8080"])"));
  EXPECT_EQ(arg["GuestFDs"], Json::parse("[0]"));
  EXPECT_EQ(arg["KUID"], 65534);
  EXPECT_TRUE(arg["Capabilities"].is_null());
  EXPECT_TRUE(arg["NoNewPrivileges"].get<bool>());
  // Nobody else asks how it ended, and the sentry would keep that.
  EXPECT_EQ(asked[1]["method"], "containerManager.WaitPID");
}

/// What a sentry that was broken into writes, the next pod would run.
TEST_F(PortForwardTest, HandsTheSentryAProgramThatCannotBeChanged) {
  ExpectReaches(8080);
  EXPECT_EQ(sentry_.Seals(), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

TEST_F(PortForwardTest, ResetsWhereNobodyListens) {
  ExpectReset(8080);
  EXPECT_TRUE(context_.WaitForLog("port 8080 of the pod: connect: ECONNREFUSED"));
  ExpectReaches(8080);
}

TEST_F(PortForwardTest, ResetsWhatTheSentryRefuses) {
  sentry_.Refuse(R"(container "p1" has stopped)");
  ExpectReset(8080);
  EXPECT_TRUE(context_.WaitForLog(R"(container "p1" has stopped)"));
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(PortForwardTest, CarriesManyAtOnce) {
  constexpr size_t kMany = 64;
  const auto [listener, port] = ListenIn(&sentry_.inside(), "127.0.0.1", 8080, kMany);
  std::vector<std::thread> servers;
  for (size_t i = 0; i < kMany; ++i) {
    servers.emplace_back([&listener] {
      const UniqueFd one = AcceptFrom(listener);
      SendText(one, ReadAll(one));
    });
  }
  std::vector<UniqueFd> clients;
  for (size_t i = 0; i < kMany; ++i) {
    clients.push_back(Connect(8080));
    EXPECT_TRUE(SendText(clients.back(), Format("client {}", i)));
  }
  for (size_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(shutdown(clients[i].get(), SHUT_WR), 0);
    EXPECT_EQ(ReadAll(clients[i]), Format("client {}", i));
  }
  for (std::thread& server : servers) {
    server.join();
  }
}

TEST_F(PortForwardTest, StartsTheProcessThatCarriesAgain) {
  ExpectReaches(8080);
  const auto process = context_.SpawnedUnder("forward");
  ASSERT_TRUE(process->Signal(SIGKILL));
  ASSERT_TRUE(process->Wait(kLimit));
  ExpectReaches(8080);
}

TEST_F(PortForwardTest, GoesOnInTheNextEngine) {
  const auto [listener, port] = ListenIn(&sentry_.inside(), "127.0.0.1", 8080);
  const UniqueFd before = Connect(8080);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_TRUE(SendText(before, "1"));
  ASSERT_EQ(ReadSome(server, 1), "1");
  forward_.reset();
  // What was begun goes on, what is new waits.
  ASSERT_TRUE(SendText(before, "2"));
  EXPECT_EQ(ReadSome(server, 1), "2");
  const UniqueFd meanwhile = Connect(8080);
  ASSERT_TRUE(SendText(meanwhile, "3"));
  context_.RestartEngine();
  auto recovered = PortForward::Recover(context_, Request());
  ASSERT_TRUE(recovered) << recovered.error().message;
  forward_ = *recovered;
  const UniqueFd next = AcceptFrom(listener);
  EXPECT_EQ(ReadSome(next, 1), "3");
  ASSERT_TRUE(SendText(before, "4"));
  EXPECT_EQ(ReadSome(server, 1), "4");
}

TEST_F(PortForwardTest, SuspendedEndsAllConnectionsAndTakesOthersLater) {
  const auto [listener, port] = ListenIn(&sentry_.inside(), "127.0.0.1", 8080);
  const UniqueFd client = Connect(8080);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_TRUE(SendText(client, "1"));
  ASSERT_EQ(ReadSome(server, 1), "1");
  ASSERT_TRUE(forward_->Suspend(kLimit));
  EXPECT_EQ(ReadAll(client), "");
  EXPECT_EQ(context_.Alive(), 0U);
  const UniqueFd meanwhile = Connect(8080);
  ASSERT_TRUE(SendText(meanwhile, "2"));
  const auto inside = Ports().Serving(urpc::Soon());
  ASSERT_TRUE(inside) << inside.error().message;
  ASSERT_TRUE(Ports().End(*inside, urpc::Soon()));
  EXPECT_EQ(sentry_.Alive(), 0U) << "what waits is not executed";
  EXPECT_THAT(*Ports().Serving(urpc::Soon()), IsEmpty());
  EXPECT_EQ(ReadAll(server), "");
  ASSERT_TRUE(forward_->Suspend(kLimit)) << "again";
  ASSERT_TRUE(forward_->Continue());
  const UniqueFd next = AcceptFrom(listener);
  EXPECT_EQ(ReadSome(next, 1), "2");
}

TEST_F(PortForwardTest, SuspendedAfterARestartOfTheEngineEndsThoseFromBefore) {
  const auto [listener, port] = ListenIn(&sentry_.inside(), "127.0.0.1", 8080);
  const UniqueFd client = Connect(8080);
  const UniqueFd server = AcceptFrom(listener);
  forward_.reset();
  context_.RestartEngine();
  forward_ = PortForward::Recover(context_, Request()).value();
  ASSERT_TRUE(forward_->Suspend(kLimit));
  EXPECT_EQ(ReadAll(client), "");
  ASSERT_TRUE(Ports().End(Ports().Serving(urpc::Soon()).value(), urpc::Soon()));
  EXPECT_EQ(sentry_.Alive(), 0U);
}

TEST_F(PortForwardTest, EndsNobodyElseInTheSentry) {
  const auto list = [this](int pid, int parent, int uid, const char* name) {
    sentry_.List({{"pid", pid}, {"ppid", parent}, {"uid", uid}, {"cmd", name}});
  };
  list(1, 0, 0, "gantry-forward");
  list(7, 1, 65534, "gantry-forward");
  list(8, 0, 65534, "sleep");
  list(9, 0, 65534, "gantry-forward");
  // It has just been executed.
  list(10, 0, 65534, "host:[17]");
  EXPECT_THAT(Ports().Serving(urpc::Soon()).value(), ElementsAre(9, 10));
}

TEST_F(PortForwardTest, SaysWhatInTheSentryHasNotEnded) {
  sentry_.Hang();
  const Status failed = Ports().End({9}, std::chrono::steady_clock::now());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(failed.error().message, testing::HasSubstr("end gantry-forward in the sandbox"));
}

TEST_F(PortForwardTest, EndsWithoutATrace) {
  ExpectReaches(8080);
  ASSERT_TRUE(PortForward::End(context_, forward_, kLimit));
  EXPECT_EQ(ConnectIn(&pod_, "127.0.0.1", 8080).second, ECONNREFUSED);
  EXPECT_THAT(context_.StoredNames(), IsEmpty());
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(PortForwardTest, OfAnEngineBeforeEndsToo) {
  ExpectReaches(8080);
  EXPECT_THAT(context_.StoredNames(),
              ElementsAre("forward-link", "forward-listener", "forward-relay"));
  forward_.reset();
  context_.RestartEngine();
  ASSERT_TRUE(PortForward::End(context_, nullptr, kLimit));
  EXPECT_THAT(context_.StoredNames(), IsEmpty());
  EXPECT_EQ(context_.Alive(), 0U);
  EXPECT_EQ(ConnectIn(&pod_, "127.0.0.1", 8080).second, ECONNREFUSED);
  context_.RestartEngine();
  EXPECT_EQ(PortForward::Recover(context_, Request()).error().code, Code::kNotFound);
}

TEST_F(PortForwardTest, IsNotBegunInTheNodesOwnNetwork) {
  const auto begun = PortForward::Begin(context_, "/proc/self/ns/net", Request());
  EXPECT_EQ(begun.error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace gantry::gvisor
