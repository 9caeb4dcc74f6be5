// SPDX-License-Identifier: Apache-2.0
//
// Answers that come while the wait for them is being set up.
#include "plugins/gvisor/sentry/exit_wait.h"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using urpc::FakeAnswer;

/// Whatever is watched is readable at once, and again with each further watch.
class EagerContext : public FakeSandboxContext {
 public:
  Result<std::unique_ptr<Watch>> WatchReadable(int, std::function<void()> ready) override {
    ready_.push_back(std::move(ready));
    Fire();
    return std::make_unique<Watched>();
  }

  void Fire() {
    for (const auto& ready : ready_) {
      ready();
    }
  }

 private:
  struct Watched : Watch {};

  std::vector<std::function<void()>> ready_;
};

/// A Wait has been answered on it.
urpc::Connection Answered(uint32_t status, std::vector<UniqueFd>& peers) {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const std::string bytes = FakeAnswer::Of(status).bytes;
  EXPECT_EQ(send(ends[0], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  peers.emplace_back(ends[0]);
  return urpc::Connection(UniqueFd(ends[1]));
}

TEST(ExitWait, TellsOnceHoweverManyAnswersAreThereAlready) {
  EagerContext context;
  std::vector<UniqueFd> peers;
  std::vector<urpc::Connection> connections;
  connections.push_back(Answered(3 << 8, peers));
  connections.push_back(Answered(3 << 8, peers));
  std::vector<std::optional<uint32_t>> told;
  const auto wait =
      ExitWait::Begin(context, std::move(connections),
                      [&](std::optional<uint32_t> status) { told.push_back(status); });
  ASSERT_TRUE(wait);
  context.Fire();
  EXPECT_THAT(told, ElementsAre(3));
}

TEST(ExitWait, IsSettledWhenWhoeverTellsHasTold) {
  EagerContext context;
  std::vector<UniqueFd> peers;
  std::vector<urpc::Connection> connections;
  connections.push_back(Answered(3 << 8, peers));
  std::binary_semaphore telling{0};
  std::binary_semaphore go_on{0};
  std::atomic<bool> told = false;
  const auto wait = ExitWait::Begin(context, std::move(connections), [&](std::optional<uint32_t>) {
    telling.release();
    go_on.acquire();
    told = true;
  });
  ASSERT_TRUE(wait);
  std::jthread teller([&] { context.Fire(); });
  telling.acquire();
  auto settled = std::async(std::launch::async, [&] {
    (*wait)->Settle(urpc::Soon());
    return told.load();
  });
  // It has nothing to wait for but the other thread.
  EXPECT_EQ(settled.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  go_on.release();
  EXPECT_TRUE(settled.get());
}

}  // namespace
}  // namespace gantry::gvisor
