// SPDX-License-Identifier: Apache-2.0
//
// Answers of a sentry that its guest has taken over, heard on the threads that hear them: those of
// a pool, whose stacks are small.
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/async/worker_pool.h"
#include "core/os/fs.h"
#include "plugins/gvisor/sentry/container_manager.h"
#include "tests/unit/gvisor/fake_sentry.h"

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using urpc::Cause;
using urpc::Connection;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

constexpr int kNoFailure = -1;

class HostileAnswerTest : public testing::Test {
 protected:
  HostileAnswerTest() {
    sentry_ = std::make_unique<FakeSentry>(
        Path(), [this](const Json&, auto&) { return FakeAnswer{answer_, {}, false}; });
  }

  std::string Path() const { return folder_.path() + "/control.sock"; }

  static std::string Succeeds(const std::string& result) {
    return R"({"success":true,"err":"","result":)" + result + "}";
  }

  static std::string Nested(size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  }

  /// `{},{},...` in an array of `bytes`.
  static std::string Many(size_t bytes) {
    std::string text = "[{}";
    while (text.size() + 1 < bytes) {
      text += ",{}";
    }
    return text + "]";
  }

  /// What `call` makes of the answer on a thread of a pool.
  template <class Call>
  urpc::Failure OnAWorker(Call call) {
    async::WorkerPool pool(loop_, 1, 1);
    urpc::Failure failure;
    std::optional<Result<int>> done;
    async::Start([](async::WorkerPool& workers, Call& one, urpc::Failure& failed,
                    std::optional<Result<int>>& out) -> async::Task<void> {
      out = co_await workers.Run([&one, &failed]() -> Result<int> {
        if (auto outcome = one(); !outcome) {
          failed = outcome.error();
          return static_cast<int>(failed.cause);
        }
        return kNoFailure;
      });
    }(pool, call, failure, done));
    while (!done) {
      loop_.RunOnce(std::chrono::milliseconds(50));
    }
    EXPECT_NE(done->value_or(kNoFailure), kNoFailure) << "it was taken";
    return failure;
  }

  async::Loop loop_;
  os::TempDir folder_ = os::TempDir::Create().value();
  std::string answer_;
  std::unique_ptr<FakeSentry> sentry_;
  ContainerManager manager_{Path()};
};

TEST_F(HostileAnswerTest, IsRefusedWhereItIsDeeperThanAStack) {
  answer_ = Succeeds(Nested(60'000));
  const auto failure = OnAWorker([this] { return manager_.Event("k1", Soon()); });
  EXPECT_EQ(failure.cause, Cause::kProtocol);
  EXPECT_THAT(failure.text, HasSubstr("nested deeper than 64 levels"));
}

TEST_F(HostileAnswerTest, IsRefusedWhereItStaysInTheSocket) {
  answer_ = Succeeds(Nested(2'000));
  auto wait = Connection::Open(Path(), Soon());
  ASSERT_TRUE(wait);
  ASSERT_TRUE(ContainerManager::SendWait(*wait, "k1", Soon()));
  for (int i = 0; i < 2; ++i) {
    const auto failure = OnAWorker([&] { return ContainerManager::PeekWait(*wait, Soon()); });
    EXPECT_EQ(failure.cause, Cause::kProtocol);
    EXPECT_THAT(failure.text, HasSubstr("nested deeper than 64 levels"));
  }
}

TEST_F(HostileAnswerTest, IsRefusedWhereItIsLongerThanTheCallNeeds) {
  answer_ = Succeeds(Many(size_t{16} << 20));
  const auto event = OnAWorker([this] { return manager_.Event("k1", Soon()); });
  EXPECT_EQ(event.cause, Cause::kProtocol);
  EXPECT_THAT(event.text, HasSubstr("has more than the 262144 bytes"));
  const auto list = OnAWorker([this] { return manager_.Processes("k1", Soon()); });
  EXPECT_EQ(list.cause, Cause::kProtocol);
  EXPECT_THAT(list.text, HasSubstr("has more than the 4194304 bytes"));
}

TEST_F(HostileAnswerTest, IsRefusedWhereItHasMoreValuesThanBytesTell) {
  // Within the bytes of the call, and a hundred megabytes once it were parsed.
  answer_ = Succeeds(Many(size_t{3} << 20));
  EXPECT_EQ(OnAWorker([this] { return manager_.Processes("k1", Soon()); }).cause, Cause::kProtocol);
}

TEST_F(HostileAnswerTest, RefusesWithWordsOfNoEnd) {
  answer_ = R"({"success":false,"err":)" + Nested(60'000) + "}";
  EXPECT_EQ(OnAWorker([this] { return manager_.State("k1", Soon()); }).cause, Cause::kProtocol);
  for (const char* err : {"[[7]]", R"("")"}) {
    answer_ = Format(R"({{"success":false,"err":{}}})", err);
    const auto failure = OnAWorker([this] { return manager_.State("k1", Soon()); });
    EXPECT_EQ(failure.cause, Cause::kRefused);
    EXPECT_THAT(failure.text, HasSubstr("does not say why"));
  }
}

TEST_F(HostileAnswerTest, ListsAllOfALargePodsProcesses) {
  Json all = Json::array();
  constexpr int kProcesses = 10'000;
  for (int pid = 1; pid <= kProcesses; ++pid) {
    all.push_back({{"uid", 0},
                   {"pid", pid},
                   {"ppid", 1},
                   {"threads", {pid}},
                   {"c", 0},
                   {"tty", "?"},
                   {"stime", "11:31"},
                   {"time", "10ms"},
                   {"cmd", "nginx"}});
  }
  answer_ = Succeeds(all.dump());
  const auto lines = manager_.Processes("k1", Soon());
  ASSERT_TRUE(lines) << lines.error().text;
  EXPECT_EQ(lines->size(), size_t{kProcesses});
}

}  // namespace
}  // namespace gantry::gvisor
