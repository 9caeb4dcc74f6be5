// SPDX-License-Identifier: Apache-2.0
//
// A sentry whose root is started while engines are killed: releases that make the links of a
// network when they are told of it, 20240729, are told once.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "plugins/gvisor/sentry/sentry.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

/// How an engine ends in the middle.
struct Killed {};

/// Of an engine that may be killed as soon as it has kept a call's connection.
class KilledAtStore : public FakeSandboxContext {
 public:
  Status Store(std::string_view name, const UniqueFd& fd) override {
    GANTRY_CHECK_OK(FakeSandboxContext::Store(name, fd));
    if (name == dies_at) {
      dies_at.clear();
      throw Killed();
    }
    return {};
  }

  std::string dies_at;
};

class StartRootTest : public testing::Test {
 protected:
  StartRootTest() {
    StartServer();
    Restart();
  }

  void StartServer() {
    has_links_ = false;
    server_ =
        std::make_unique<FakeSentry>(socket_, [this](const Json& request, std::vector<UniqueFd>&) {
          return Answer(request["method"], request["arg"]);
        });
  }

  void StopServer() { server_.reset(); }

  /// The engine is killed, and the next one comes.
  void Restart() {
    sentry_ = std::make_shared<Sentry>(context_, "root", socket_, [this](const SentryState& state) {
      if (full_) {
        return Status(Fail(Code::kResourceExhausted, "no space left on device"));
      }
      saved_ = state;
      return Status();
    });
    EXPECT_TRUE(sentry_->Recover(saved_, Soon()));
  }

  Status Start() {
    return sentry_->StartRoot(
        [this] {
          ++taken_;
          return NetworkSetup(R"({"PCAP":false})", R"({"PCAP":true})", {});
        },
        Soon());
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  FakeAnswer Answer(const std::string& method, const Json& arg) {
    const std::lock_guard lock(mutex_);
    const std::string name = method.substr(method.find('.') + 1);
    // The one never has an answer, the other is `DurableCall::WasSent`'s.
    if (name == "Wait") {
      return {};
    }
    if (name == "HasAnythingBeenSent" || (is_old_ && name == "SetNetworkArgs")) {
      return FakeAnswer::Refusing("unknown method");
    }
    asked_.push_back(name);
    if (name == "SetNetworkArgs" || name == "CreateLinksAndRoutes") {
      told_ = arg;
    }
    const bool twice = name == "CreateLinksAndRoutes" && std::exchange(has_links_, true);
    if (twice || name == refused_) {
      return FakeAnswer::Refusing(twice ? "duplicate nic id" : "no space left on device");
    }
    return FakeAnswer::Of(Json::object());
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string socket_ = folder_.path() + "/sentry.sock";
  KilledAtStore context_;
  SentryState saved_;
  bool full_ = false;
  int taken_ = 0;
  /// Guards what follows, while the sentry is asked.
  std::mutex mutex_;
  bool is_old_ = true;
  bool has_links_ = false;
  std::string refused_;
  std::vector<std::string> asked_;
  Json told_;
  std::unique_ptr<FakeSentry> server_;
  std::shared_ptr<Sentry> sentry_;
};

TEST_F(StartRootTest, HandsOverTheNetworkAsTheReleaseKnowsIt) {
  ASSERT_TRUE(Start());
  EXPECT_THAT(asked(), ElementsAre("CreateLinksAndRoutes", "StartRoot"));
  EXPECT_EQ(told_["PCAP"], true) << "what is for releases like this";
  EXPECT_THAT(context_.stored, IsEmpty());
  is_old_ = false;
  saved_ = {};
  asked_.clear();
  Restart();
  ASSERT_TRUE(Start());
  EXPECT_THAT(asked(), ElementsAre("SetNetworkArgs", "StartRoot"));
  EXPECT_EQ(told_["PCAP"], false);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(StartRootTest, HandsOverNothingWhereTheNetworkIsTheNodes) {
  ASSERT_TRUE(sentry_->StartRoot([] { return std::nullopt; }, Soon()));
  EXPECT_THAT(asked(), ElementsAre("StartRoot"));
}

TEST_F(StartRootTest, TheNextEngineMakesNoLinksAgain) {
  context_.dies_at = "start-root";
  EXPECT_THROW(IgnoreError(Start(), "it is killed"), Killed);
  EXPECT_THAT(asked(), ElementsAre("CreateLinksAndRoutes"));
  Restart();
  // It is killed too, before anybody asks.
  Restart();
  ASSERT_TRUE(Start());
  EXPECT_THAT(asked(), ElementsAre("CreateLinksAndRoutes", "StartRoot"));
  EXPECT_EQ(taken_, 1);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(StartRootTest, TheNextEngineMakesTheLinksThatNobodyHasAskedFor) {
  context_.dies_at = "network";
  EXPECT_THROW(IgnoreError(Start(), "it is killed"), Killed);
  EXPECT_THAT(asked(), IsEmpty());
  Restart();
  EXPECT_THAT(context_.stored, IsEmpty());
  ASSERT_TRUE(Start());
  EXPECT_THAT(asked(), ElementsAre("CreateLinksAndRoutes", "StartRoot"));
  EXPECT_EQ(taken_, 2);
}

TEST_F(StartRootTest, LeavesNothingOfLinksThatAreRefused) {
  refused_ = "CreateLinksAndRoutes";
  const Status refused = Start();
  EXPECT_EQ(refused.error().message,
            "hand over the network: Network.CreateLinksAndRoutes: no space left on device");
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(StartRootTest, WhatCannotBeKeptGoesWithTheSentry) {
  full_ = true;
  ASSERT_TRUE(Start());
  EXPECT_THAT(context_.stored, SizeIs(2));
  sentry_->Hangup();
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(StartRootTest, TheNextEngineKeepsWhatCouldNotBe) {
  full_ = true;
  ASSERT_TRUE(Start());
  full_ = false;
  Restart();
  EXPECT_TRUE(saved_.started);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(StartRootTest, ASentryThatHasEndedLeavesNothing) {
  for (const char* call : {"network", "start-root"}) {
    context_.dies_at = call;
    EXPECT_THROW(IgnoreError(Start(), "it is killed"), Killed) << call;
    StopServer();
    Restart();
    EXPECT_THAT(context_.stored, IsEmpty()) << call;
    saved_ = {};
    StartServer();
    Restart();
  }
}

}  // namespace
}  // namespace gantry::gvisor
