// SPDX-License-Identifier: Apache-2.0
//
// Forwarded ports from end to end: a client on the pod's loopback, the engine's listener,
// gantry-forward on the host, a stream of the guest's, and the agent's own code behind it, in the
// network namespace of a guest.
#include "plugins/vmm/network/guest_ports.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"
#include "plugins/vmm/guest/forwards.h"
#include "plugins/vmm/network/port_forwarding.h"
#include "tests/unit/toolkit/forward/forward_fixture.h"

namespace gantry::vmm {
namespace {

/// Of which nothing but dialling is asked.
class DialingPlatform : public guest::Platform {
 public:
  explicit DialingPlatform(std::string path) : path_(std::move(path)) {}

  Result<UniqueFd> Dial(uint32_t /*port*/) override { return ConnectUnix(path_); }

  Status SetUp(const protocol::SetUp& /*request*/) override { return {}; }

  Status Attach(const protocol::Attach& /*request*/) override { return {}; }

  Status Detach(const protocol::Detach& /*request*/) override { return {}; }

  Result<protocol::OnlineAnswer> Online(const protocol::Online& /*request*/) override {
    return protocol::OnlineAnswer{};
  }

  void Sync() override {}

  void PowerOff() override {}

 private:
  const std::string path_;
};

void Wake(const UniqueFd& event) {
  const uint64_t one = 1;
  EXPECT_EQ(::write(event.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
}

/// The agent's loop, in a guest's namespace.
class AgentLoop {
 public:
  AgentLoop(const UniqueFd& netns, const std::string& path) : platform_(path) {
    event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    thread_ = std::thread([this, fd = netns.get()] {
      EXPECT_EQ(::setns(fd, CLONE_NEWNET), 0);
      Run();
    });
  }

  AgentLoop(const AgentLoop&) = delete;
  AgentLoop& operator=(const AgentLoop&) = delete;

  ~AgentLoop() {
    stop_ = true;
    Wake(event_);
    thread_.join();
  }

  Status Ask(const protocol::Forward& request) {
    std::promise<Status> answer;
    {
      const std::lock_guard lock(mutex_);
      asked_.emplace_back(request, &answer);
    }
    Wake(event_);
    return answer.get_future().get();
  }

 private:
  void Run() {
    const std::unique_ptr<guest::Loop> loop = guest::Loop::Make().value();
    guest::Forwards forwards(*loop, platform_);
    const guest::Loop::Watch watch = loop->On(event_.get(), EPOLLIN, [&](uint32_t) {
      uint64_t count = 0;
      EXPECT_GT(::read(event_.get(), &count, sizeof(count)), 0);
      const std::lock_guard lock(mutex_);
      for (auto& [request, answer] : std::exchange(asked_, {})) {
        answer->set_value(forwards.Begin(request));
      }
    });
    while (!stop_) {
      EXPECT_TRUE(loop->Turn(std::chrono::hours(1)));
    }
  }

  DialingPlatform platform_;
  UniqueFd event_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::deque<std::pair<protocol::Forward, std::promise<Status>*>> asked_;
  std::thread thread_;
};

/// What listens for the streams that the guest dials.
class HostStreams {
 public:
  explicit HostStreams(const std::string& path)
      : listener_(StreamListener::On(ListenUnix(path).value()).value()),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { Run(); }) {}

  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  ~HostStreams() {
    Wake(stop_);
    thread_.join();
  }

  StreamListener& listener() { return *listener_; }

 private:
  void Run() {
    for (;;) {
      std::array<pollfd, 2> two = {{{.fd = listener_->fd(), .events = POLLIN, .revents = 0},
                                    {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
      ::poll(two.data(), two.size(), -1);
      if (two[1].revents != 0) {
        return;
      }
      listener_->OnReadable();
    }
  }

  const std::unique_ptr<StreamListener> listener_;
  const UniqueFd stop_;
  std::thread thread_;
};

class GuestPortsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make network namespaces";
    }
    pod_ = forward::NetnsWithLoopback();
    guest_ = forward::NetnsWithLoopback();
    ASSERT_TRUE(pod_ && guest_) << "no network namespaces here";
    streams_ = std::make_unique<HostStreams>(Socket());
    agent_ = std::make_unique<AgentLoop>(guest_, Socket());
  }

  void TearDown() override {
    if (forward_) {
      EXPECT_TRUE(forward::PortForward::End(context_, forward_, std::chrono::seconds(20)));
    }
  }

  void Begin() {
    forward_ = ForwardPorts(context_, {.netns = forward::PathOfFd(pod_),
                                       .ports = Ports(),
                                       .cgroups = {},
                                       .program = GANTRY_FORWARD});
    ASSERT_TRUE(forward_) << testing::PrintToString(context_.log);
  }

  void ExpectForwards(const char* address) {
    const auto [listener, port] = forward::ListenIn(&guest_, address);
    ASSERT_TRUE(listener) << address;
    const auto [client, failed] = forward::ConnectIn(&pod_, "127.0.0.1", port);
    ASSERT_EQ(failed, 0);
    const UniqueFd server = forward::AcceptFrom(listener);
    ASSERT_TRUE(forward::SendText(client, "question"));
    ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
    EXPECT_EQ(forward::ReadAll(server), "question");
    ASSERT_TRUE(forward::SendText(server, "answer"));
    ASSERT_EQ(::shutdown(server.get(), SHUT_WR), 0);
    EXPECT_EQ(forward::ReadAll(client), "answer");
  }

  GuestPorts Ports() {
    return {.ask = [this](const protocol::Forward& request,
                          Deadline /*deadline*/) { return agent_->Ask(request); },
            .streams = &streams_->listener(),
            .limit = std::chrono::seconds(20)};
  }

  std::string Socket() const { return folder_.path() + "/streams"; }

  os::TempDir folder_ = os::TempDir::Create().value();
  UniqueFd pod_;
  UniqueFd guest_;
  FakeSandboxContext context_;
  std::unique_ptr<HostStreams> streams_;
  std::unique_ptr<AgentLoop> agent_;
  std::shared_ptr<forward::PortForward> forward_;
};

TEST_F(GuestPortsTest, LeadToTheGuestsLoopback) {
  Begin();
  ExpectForwards("127.0.0.1");
  ExpectForwards("::1");
}

TEST_F(GuestPortsTest, AreThereForTheNextEngine) {
  Begin();
  ExpectForwards("127.0.0.1");
  forward_.reset();
  context_.RestartEngine();
  Begin();
  ExpectForwards("127.0.0.1");
}

TEST_F(GuestPortsTest, APodRunsWithoutThemWhereTheyCannotBe) {
  EXPECT_FALSE(ForwardPorts(
      context_,
      {.netns = "/proc/self/ns/net", .ports = Ports(), .cgroups = {}, .program = GANTRY_FORWARD}));
  EXPECT_TRUE(context_.WaitForLog("ports cannot be forwarded into this sandbox: "));
  EXPECT_EQ(context_.counts["forward_unavailable"], 1U);
}

TEST_F(GuestPortsTest, AClientOfNoServerIsReset) {
  Begin();
  uint16_t port = 0;
  {
    const auto [listener, was] = forward::ListenIn(&guest_, "127.0.0.1");
    port = was;
  }
  const auto [client, failed] = forward::ConnectIn(&pod_, "127.0.0.1", port);
  ASSERT_EQ(failed, 0);
  int error = 0;
  EXPECT_EQ(forward::ReadAll(client, &error), "");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_TRUE(context_.WaitForLog("connect: ECONNREFUSED"));
}

TEST_F(GuestPortsTest, SaysWhatTheAgentSays) {
  const auto refused = Ports().Connect(0);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message, "forward port 0: it is none");
}

TEST_F(GuestPortsTest, WaitNoLongerThanTheyMay) {
  GuestPorts ports = Ports();
  ports.ask = [](const protocol::Forward&, Deadline) { return Status(); };
  ports.limit = std::chrono::milliseconds(1);
  EXPECT_EQ(ports.Connect(80).error().code, Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace gantry::vmm
