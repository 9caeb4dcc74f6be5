// SPDX-License-Identifier: Apache-2.0
//
// The operator's API between a gRPC client and the sockets of engine and keeper.
#include "core/door/operator_calls.h"

#include <deque>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/link/operator_api.h"
#include "core/os/fs.h"
#include "core/rpc/typed.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/door/fake_keeper.h"
#include "tests/unit/rpc/fake_server.h"

namespace gantry::door {
namespace {

using testing::ElementsAre;

/// A client that has sent one request, and takes what it is sent when the test lets it.
class FakeStream final : public Stream {
 public:
  explicit FakeStream(std::string request) : request_(std::move(request)) {}

  async::Task<Result<std::optional<std::string>>> Read() override {
    co_return std::exchange(request_, std::nullopt);
  }

  async::Task<Status> Write(std::string message) override {
    written.push_back(std::move(message));
    const async::OneShot<void> gate = taken;
    co_await gate.Wait();
    if (gone) {
      co_return Fail(Code::kCanceled, "gone");
    }
    co_return Status();
  }

  bool ended() const override { return gone; }

  std::vector<std::string> written;
  async::OneShot<void> taken;
  bool gone = false;

 private:
  std::optional<std::string> request_;
};

class OperatorCallsTest : public testing::Test {
 protected:
  OperatorCallsTest() {
    engine_.Listen(dir_.path() + "/" + operator_api::kSocketName);
    engine_.on_request = [this](const test::FakeServer::Received& received) {
      v1::EventsRequest request;
      EXPECT_TRUE(request.ParseFromString(received.request.payload));
      asked_.push_back(request);
      held_ = received;
      if (!answers_.empty()) {
        engine_.Answer(received, answers_.front().SerializeAsString());
        answers_.pop_front();
      }
    };
  }

  ~OperatorCallsTest() override {
    engine_.GoAway();
    test::Settle(loop_, pool_);
  }

  void SetUp() override { ASSERT_TRUE(calls_.Register(table_, streams_)); }

  template <class Response, class Request>
  Result<Response> Call(const char* method, const Request& request) {
    rpc::Call call;
    call.service = operator_api::kService;
    call.method = method;
    call.payload = request.SerializeAsString();
    GANTRY_TRY(const rpc::Handler* const handler, table_.Find(operator_api::kService, method));
    GANTRY_TRY(const std::string bytes, test::Await(loop_, (*handler)(std::move(call))));
    Response response;
    GANTRY_CHECK_OK(rpc::ParseMessage(bytes, response));
    return response;
  }

  static v1::EventsResponse Page(uint64_t last, int events, uint64_t lost = 0) {
    v1::EventsResponse page;
    page.set_last(last);
    page.set_lost(lost);
    for (int i = 0; i < events; ++i) {
      page.add_events()->set_number(last);
    }
    return page;
  }

  /// Begins WatchEvents. What it returned is in `status_` then.
  std::shared_ptr<FakeStream> Watch() {
    v1::EventsRequest request;
    request.set_id("pod");
    auto stream = std::make_shared<FakeStream>(request.SerializeAsString());
    async::Start(test::Store(streams_.at("/gantry.v1.Operator/WatchEvents")(stream), &status_));
    return stream;
  }

  void Until(const std::function<bool()>& happened) {
    ASSERT_TRUE(test::RunUntil(loop_, happened));
  }

  os::TempDir dir_ = *os::TempDir::Create();
  async::Loop loop_;
  async::WorkerPool pool_{loop_, 2, 16};
  test::FakeKeeper keeper_{dir_.path(), "/none"};
  test::FakeServer engine_{loop_};
  OperatorCalls calls_{loop_, pool_, dir_.path()};
  rpc::MethodTable table_;
  StreamTable streams_;
  std::vector<v1::EventsRequest> asked_;
  std::deque<v1::EventsResponse> answers_;
  std::optional<test::FakeServer::Received> held_;
  std::optional<Status> status_;
};

TEST_F(OperatorCallsTest, PassEventsOnPageByPage) {
  answers_ = {Page(5, 2), Page(6, 0), Page(9, 1, 3)};
  const auto stream = Watch();
  stream->taken.Set();
  Until([&] { return asked_.size() == 4; });
  ASSERT_EQ(stream->written.size(), 2U) << "what is empty is not passed on";
  EXPECT_EQ(stream->written[0], Page(5, 2).SerializeAsString());
  EXPECT_EQ(stream->written[1], Page(9, 1, 3).SerializeAsString());
  EXPECT_EQ(asked_[0].wait_ms(), 0U) << "the first page is told at once";
  EXPECT_EQ(asked_[1].after(), 5U);
  EXPECT_GT(asked_[1].wait_ms(), 0U);
  EXPECT_EQ(asked_[2].after(), 6U);
  EXPECT_EQ(asked_[3].after(), 9U);
  EXPECT_EQ(asked_[3].id(), "pod");
}

TEST_F(OperatorCallsTest, TellWhoWatchesWhereItBegins) {
  answers_ = {Page(0, 0)};
  const auto stream = Watch();
  Until([&] { return stream->written.size() == 1; });
  stream->taken.Set();
}

TEST_F(OperatorCallsTest, AskForNoEventsThatNobodyTakes) {
  answers_ = {Page(5, 2), Page(6, 1)};
  const auto stream = Watch();
  Until([&] { return stream->written.size() == 1; });
  test::RunAllReady(loop_);
  EXPECT_EQ(asked_.size(), 1U);
  stream->gone = true;
  stream->taken.Set();
  Until([&] { return status_.has_value(); });
  EXPECT_EQ(status_->error().code, Code::kCanceled);
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(OperatorCallsTest, EndAStreamWhoseEngineFails) {
  const auto stream = Watch();
  Until([&] { return held_.has_value(); });
  engine_.Answer(*held_, Fail(Code::kResourceExhausted, "too many"));
  Until([&] { return status_.has_value(); });
  EXPECT_EQ(status_->error().code, Code::kResourceExhausted);
}

TEST_F(OperatorCallsTest, TellOfTheKeeper) {
  const auto keeper = Call<v1::KeeperResponse>(operator_api::kKeeper, v1::KeeperRequest());
  ASSERT_TRUE(keeper) << keeper.error().message;
  EXPECT_EQ(keeper->keeper_pid(), 4U);
  EXPECT_EQ(keeper->engine_state(), "up");
  ASSERT_EQ(keeper->instances_size(), 1);
  EXPECT_EQ(keeper->instances(0).id(), "left");
  const link::KeeperStatus back = link::FromMessage(*keeper);
  EXPECT_EQ(back.engine_state, static_cast<uint32_t>(link::EngineState::kUp));
  EXPECT_EQ(back.instances.at(0).announce.id, "left");
}

TEST_F(OperatorCallsTest, HaveTheKeeperDoWhatItDoes) {
  v1::UpgradeEngineRequest engine;
  engine.set_program("/gantryd");
  const auto upgraded = Call<v1::UpgradeEngineResponse>(operator_api::kUpgradeEngine, engine);
  ASSERT_TRUE(upgraded) << upgraded.error().message;
  EXPECT_EQ(upgraded->engine_pid(), 9U);
  EXPECT_EQ(upgraded->fallback(), "/gantryd");
  const auto refused =
      Call<v1::UpgradeKeeperResponse>(operator_api::kUpgradeKeeper, v1::UpgradeKeeperRequest());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kFailedPrecondition);
  v1::DeleteRequest one;
  one.set_namespace_("k8s.io");
  one.set_id("c");
  one.set_bundle("/b");
  one.set_containerd("/c.sock");
  ASSERT_TRUE(Call<v1::DeleteResponse>(operator_api::kDelete, one));
  ASSERT_EQ(keeper_.deleted().size(), 1U);
  EXPECT_EQ(keeper_.deleted()[0].grpc_address, "/c.sock");
}

}  // namespace
}  // namespace gantry::door
