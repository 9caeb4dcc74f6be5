// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/client.h"

#include <condition_variable>
#include <list>
#include <thread>

#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/unit/gvisor/fake_sentry.h"

namespace gantry::urpc {
namespace {

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    sentry_ = std::make_unique<FakeSentry>(
        client_.path(), [this](const Json& request, auto&) { return Answer(request["method"]); });
  }

  ~ClientTest() override {
    {
      const std::lock_guard lock(mutex_);
      released_ = true;
      changed_.notify_all();
    }
    sentry_.reset();
  }

  FakeAnswer Answer(const std::string& method) {
    std::unique_lock lock(mutex_);
    if (method == "wait") {
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
    }
    if (method == "refuse") {
      return FakeAnswer::Refusing("unknown method");
    }
    return {FakeAnswer::Of(1).bytes, {}, method == "leave"};
  }

  void AwaitWaiting(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, Soon(), [&] { return waiting_ == count; });
    EXPECT_EQ(waiting_, count);
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  Client client_{folder_.path() + "/control.sock"};
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t waiting_ = 0;
  bool released_ = false;
  std::unique_ptr<FakeSentry> sentry_;
};

TEST_F(ClientTest, KeepsItsConnectionForTheNextCall) {
  EXPECT_TRUE(client_.Call({.method = "one"}, Soon()));
  EXPECT_FALSE(client_.Call({.method = "refuse"}, Soon()));
  EXPECT_TRUE(client_.Call({.method = "two"}, Soon()));
  EXPECT_EQ(sentry_->accepted(), 1U);
}

TEST_F(ClientTest, ReplacesOneThatTheSentryHasClosed) {
  EXPECT_TRUE(client_.Call({.method = "one"}, Soon()));
  sentry_->CutOff();
  EXPECT_TRUE(client_.Call({.method = "two"}, Soon()));
  EXPECT_EQ(sentry_->accepted(), 2U);
}

TEST_F(ClientTest, KeepsNoneThatFailed) {
  const auto late = std::chrono::steady_clock::now();
  const auto answer = client_.Call({.method = "wait"}, late);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().cause, Cause::kDeadline);
  EXPECT_TRUE(client_.Call({.method = "one"}, Soon())) << "its answer is not the other's";
}

TEST_F(ClientTest, GivesACallThatWaitsItsOwn) {
  std::list<Connection> waits;
  constexpr size_t kWaits = 300;
  for (size_t i = 0; i < kWaits; ++i) {
    auto begun = client_.Begin({.method = "wait"}, Soon());
    ASSERT_TRUE(begun) << begun.error().text;
    waits.push_back(std::move(*begun));
  }
  AwaitWaiting(kWaits);
  EXPECT_TRUE(client_.Call({.method = "one"}, Soon()));
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  for (Connection& wait : waits) {
    EXPECT_TRUE(wait.Receive("wait", Soon()));
  }
}

TEST_F(ClientTest, ClosesIdleOnesAtTheEnd) {
  EXPECT_TRUE(client_.Call({.method = "one"}, Soon()));
  client_.Hangup();
  EXPECT_TRUE(client_.Call({.method = "two"}, Soon()));
  EXPECT_TRUE(client_.Call({.method = "three"}, Soon()));
  EXPECT_EQ(sentry_->accepted(), 3U) << "none is kept any more";
}

TEST_F(ClientTest, ServesSeveralAtOnce) {
  std::vector<std::jthread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([this] {
      for (int n = 0; n < 50; ++n) {
        EXPECT_TRUE(client_.Call({.method = "one"}, Soon()));
      }
    });
  }
}

}  // namespace
}  // namespace gantry::urpc
