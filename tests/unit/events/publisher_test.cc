// SPDX-License-Identifier: Apache-2.0
#include "core/events/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "proto/containerd/forward.pb.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/rpc/fake_server.h"

namespace gantry::events {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using test::Await;
using test::FakeServer;
using test::RunAllReady;
using test::RunUntil;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExitStatus kDone{0, 1};

/// A containerd that is there or not, and an engine that can be replaced.
class PublisherTest : public testing::Test {
 protected:
  PublisherTest() {
    log::SetSinkForTest([](std::string_view) {});
  }

  ~PublisherTest() override {
    StopEngine();
    log::SetSinkForTest({});
  }

  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir) << dir.error().message;
    dir_ = std::move(*dir);
    address_ = dir_.path() + "/containerd.ttrpc";
    auto memfd = CreateMemfd("publisher-test");
    ASSERT_TRUE(memfd) << memfd.error().message;
    memfd_ = std::move(*memfd);
    containerd_.on_request = [this](const FakeServer::Received& received) {
      Reply(received, std::string());
    };
    StartEngine();
  }

  void StartEngine() {
    auto outbox = Outbox::Open(*memfd_.Duplicate());
    ASSERT_TRUE(outbox) << outbox.error().message;
    publishers_ = std::make_unique<Publishers>(loop_, std::move(*outbox), options_);
    publishers_->Start();
  }

  void StopEngine() {
    if (publishers_) {
      Await(loop_, publishers_->Stop());
      publishers_.reset();
    }
  }

  Subject Of(std::string_view container) const {
    return {address_, *Namespace::Parse("k8s.io"), *ContainerId::Parse(container)};
  }

  static std::string NameOf(const FakeServer::Received& received) {
    containerd::services::events::ttrpc::v1::ForwardRequest request;
    EXPECT_TRUE(request.ParseFromString(received.request.payload));
    const auto event = DecodeContainer(request.envelope().event().value());
    return event + request.envelope().topic().substr(6);
  }

  /// Field 1 of every task event.
  static std::string DecodeContainer(std::string_view payload) {
    return std::string(payload.substr(2, static_cast<uint8_t>(payload[1])));
  }

  void Reply(const FakeServer::Received& received, const Result<std::string>& answer) {
    if (answer) {
      taken_.push_back(NameOf(received));
    }
    containerd_.Answer(received, answer);
  }

  bool RunUntilTaken(size_t count) {
    return RunUntil(loop_, [&] { return taken_.size() >= count; });
  }

  bool RunUntilEmpty() {
    return RunUntil(loop_, [&] { return publishers_->outbox().counters().queued == 0; });
  }

  PublisherOptions options_{.timeout = 1h, .backoff_min = 1ms, .backoff_max = 4ms};
  async::Loop loop_;
  os::TempDir dir_;
  std::string address_;
  UniqueFd memfd_;
  FakeServer containerd_{loop_};
  /// What containerd has taken.
  std::vector<std::string> taken_;
  std::unique_ptr<Publishers> publishers_;
};

TEST_F(PublisherTest, PublishesInOrderOverOneConnection) {
  containerd_.Listen(address_);
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  publishers_->Publish(TaskExit(Of("a"), ExecId(), 1, kDone));
  ASSERT_TRUE(RunUntilEmpty());
  publishers_->Publish(TaskDelete(Of("a"), 1, kDone));
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, ElementsAre("a/create", "a/start", "a/exit", "a/delete"));
  EXPECT_EQ(containerd_.accepted, 1);
  const rpc::Request& request = containerd_.requests[0].request;
  EXPECT_EQ(request.service, "containerd.services.events.ttrpc.v1.Events");
  EXPECT_EQ(request.method, "Forward");
  EXPECT_EQ(request.timeout, options_.timeout);
  EXPECT_EQ(rpc::FindMetadata(request.metadata, rpc::kNamespaceKey), "k8s.io");
}

TEST_F(PublisherTest, ContainersDoNotWaitForEachOther) {
  containerd_.Listen(address_);
  containerd_.on_request = [this](const FakeServer::Received& received) {
    if (NameOf(received).starts_with("b")) {
      Reply(received, std::string());
    }
  };
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  publishers_->Publish(TaskCreate(Of("b"), {}));
  publishers_->Publish(TaskStart(Of("b"), 2));
  ASSERT_TRUE(RunUntilTaken(2));
  EXPECT_THAT(taken_, ElementsAre("b/create", "b/start"));
  // The second event of `a` has not been sent before the first was taken.
  EXPECT_EQ(containerd_.requests.size(), 3U);
  containerd_.Answer(containerd_.requests[0], std::string());
  ASSERT_TRUE(RunUntil(loop_, [&] { return containerd_.requests.size() == 4; }));
  containerd_.Answer(containerd_.requests[3], std::string());
  ASSERT_TRUE(RunUntilEmpty());
}

TEST_F(PublisherTest, WaitsForContainerdToCome) {
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  RunAllReady(loop_);
  EXPECT_EQ(publishers_->outbox().Queued(address_), 2U);
  containerd_.Listen(address_);
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, ElementsAre("a/create", "a/start"));
}

TEST_F(PublisherTest, ASignOfLifeEndsThePause) {
  options_.backoff_min = 1h;
  options_.backoff_max = 1h;
  StopEngine();
  StartEngine();
  publishers_->Publish(TaskCreate(Of("a"), {}));
  RunAllReady(loop_);
  containerd_.Listen(address_);
  publishers_->Nudge("/of/nobody");
  publishers_->Nudge(address_);
  EXPECT_TRUE(RunUntilTaken(1));
}

TEST_F(PublisherTest, ARestartOfContainerdLosesNothing) {
  containerd_.Listen(address_);
  publishers_->Publish(TaskCreate(Of("a"), {}));
  ASSERT_TRUE(RunUntilEmpty());
  // It goes away with one event under way and comes back later.
  containerd_.on_request = [this](const FakeServer::Received&) { containerd_.GoAway(); };
  publishers_->Publish(TaskStart(Of("a"), 1));
  publishers_->Publish(TaskExit(Of("a"), ExecId(), 1, kDone));
  publishers_->Publish(TaskCreate(Of("b"), {}));
  ASSERT_TRUE(RunUntil(loop_, [&] { return containerd_.requests.size() >= 2; }));
  RunAllReady(loop_);
  containerd_.on_request = [this](const FakeServer::Received& received) {
    Reply(received, std::string());
  };
  containerd_.Listen(address_);
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, testing::UnorderedElementsAre("a/create", "a/start", "a/exit", "b/create"));
  EXPECT_LT(std::ranges::find(taken_, "a/start"), std::ranges::find(taken_, "a/exit"));
}

TEST_F(PublisherTest, AnEventThatContainerdCallsInvalidIsDroppedAlone) {
  containerd_.Listen(address_);
  containerd_.on_request = [this](const FakeServer::Received& received) {
    if (NameOf(received) == "a/start") {
      Reply(received, Fail(Code::kInvalidArgument, "topic: invalid argument"));
    } else {
      Reply(received, std::string());
    }
  };
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  publishers_->Publish(TaskExit(Of("a"), ExecId(), 1, kDone));
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, ElementsAre("a/create", "a/exit"));
  EXPECT_EQ(publishers_->outbox().counters().rejected, 1U);
  EXPECT_EQ(containerd_.accepted, 1);
}

TEST_F(PublisherTest, OtherErrorsAreTriedAgainInOrder) {
  containerd_.Listen(address_);
  int failures = 5;
  containerd_.on_request = [&](const FakeServer::Received& received) {
    if (NameOf(received) == "a/create" && failures-- > 0) {
      Reply(received, Fail(Code::kUnknown, "sink closed"));
    } else {
      Reply(received, std::string());
    }
  };
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, ElementsAre("a/create", "a/start"));
  EXPECT_EQ(containerd_.accepted, 1);
}

TEST_F(PublisherTest, AContainerdThatHangsIsAskedAgain) {
  options_.timeout = 1ms;
  StopEngine();
  StartEngine();
  containerd_.Listen(address_);
  int ignored = 2;
  containerd_.on_request = [&](const FakeServer::Received& received) {
    if (ignored-- <= 0) {
      Reply(received, std::string());
    }
  };
  publishers_->Publish(TaskCreate(Of("a"), {}));
  ASSERT_TRUE(RunUntilTaken(1));
}

TEST_F(PublisherTest, ANewEnginePublishesWhatTheOldOneCouldNot) {
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  RunAllReady(loop_);
  StopEngine();
  containerd_.Listen(address_);
  StartEngine();
  publishers_->Publish(TaskExit(Of("a"), ExecId(), 1, kDone));
  ASSERT_TRUE(RunUntilEmpty());
  EXPECT_THAT(taken_, ElementsAre("a/create", "a/start", "a/exit"));
  StopEngine();
  StartEngine();
  RunAllReady(loop_);
  EXPECT_EQ(containerd_.requests.size(), 3U);
}

TEST_F(PublisherTest, StopWaitsForWhatIsUnderWayAndBeginsNoMore) {
  containerd_.Listen(address_);
  containerd_.on_request = [](const FakeServer::Received&) {};
  publishers_->Publish(TaskCreate(Of("a"), {}));
  publishers_->Publish(TaskStart(Of("a"), 1));
  ASSERT_TRUE(RunUntil(loop_, [&] { return containerd_.requests.size() == 1; }));
  bool stopped = false;
  async::Start(publishers_->Stop(), [&] { stopped = true; });
  RunAllReady(loop_);
  EXPECT_FALSE(stopped);
  Reply(containerd_.requests[0], std::string());
  ASSERT_TRUE(RunUntil(loop_, [&] { return stopped; }));
  publishers_->Publish(TaskExit(Of("a"), ExecId(), 1, kDone));
  RunAllReady(loop_);
  EXPECT_EQ(containerd_.requests.size(), 1U);
  EXPECT_EQ(publishers_->outbox().Queued(address_), 2U);
}

TEST_F(PublisherTest, EventsForNobodyAreNoError) {
  Event event = TaskCreate(Of("a"), {});
  event.subject.address.clear();
  publishers_->Publish(std::move(event));
  EXPECT_EQ(publishers_->outbox().counters().queued, 0U);
}

}  // namespace
}  // namespace gantry::events
