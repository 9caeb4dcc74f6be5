// SPDX-License-Identifier: Apache-2.0
//
// A sentry that is paused and resumed where what it is cannot be kept, a full disk, and engines
// are killed besides: it never gets a Resume without a Pause, which ends it, and what nobody
// has paused does not stand still.
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "plugins/gvisor/sentry/sentry.h"
#include "tests/unit/gvisor/fake_sentry.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::IsEmpty;
using urpc::FakeAnswer;
using urpc::FakeSentry;
using urpc::Json;
using urpc::Soon;

/// Of an engine that is killed after some of its drops.
class DyingContext : public FakeSandboxContext {
 public:
  void Drop(std::string_view name) override {
    if (drops > 0) {
      FakeSandboxContext::Drop(name);
      --drops;
    }
  }

  Status Store(std::string_view name, const UniqueFd& fd) override {
    return drops > 0 ? FakeSandboxContext::Store(name, fd)
                     : Status(Fail(Code::kUnavailable, "it is dead"));
  }

  int drops = kAlive;

  static constexpr int kAlive = 1000;
};

class SwitchTest : public testing::Test {
 protected:
  SwitchTest() { Restart(); }

  /// The engine is killed, and the next one comes.
  void Restart() {
    sentry_ = std::make_shared<Sentry>(context_, "root", socket_, [this](const SentryState& state) {
      if (full_) {
        return Status(Fail(Code::kResourceExhausted, "no space left on device"));
      }
      saved_ = state;
      return Status();
    });
    IgnoreError(sentry_->Recover(saved_, Soon()), "the disk may be full");
  }

  Status Pause() { return sentry_->Pause("root", Soon()); }

  Status Resume() { return sentry_->Resume("root", Soon()); }

  int pauses() {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }

  FakeAnswer Answer(const std::string& method) {
    const std::lock_guard lock(mutex_);
    if (method == kPause) {
      ++pauses_;
    } else if (method == kResume) {
      EXPECT_GT(pauses_, 0) << "it would have ended";
      --pauses_;
    }
    return method == kPause || method == kResume ? FakeAnswer::Of(Json::object())
                                                 : FakeAnswer::Refusing("can't find method");
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::string socket_ = folder_.path() + "/sentry.sock";
  DyingContext context_;
  bool full_ = false;
  SentryState saved_ = {.started = true, .wanted = {}, .stopped = false};
  /// Guards what follows, while the sentry is asked.
  std::mutex mutex_;
  int pauses_ = 0;
  FakeSentry server_{socket_, [this](const Json& request, std::vector<UniqueFd>&) {
                       return Answer(request["method"]);
                     }};
  std::shared_ptr<Sentry> sentry_;
};

TEST_F(SwitchTest, WhatCannotBeKeptPausedGoesOn) {
  full_ = true;
  EXPECT_EQ(Pause().error().code, Code::kResourceExhausted);
  EXPECT_EQ(pauses(), 0);
  EXPECT_EQ(Pause().error().code, Code::kResourceExhausted);
  full_ = false;
  ASSERT_TRUE(Pause());
  EXPECT_EQ(pauses(), 1);
  ASSERT_TRUE(Resume());
  EXPECT_EQ(pauses(), 0);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(SwitchTest, TheNextEngineFindsWhatWasNotKept) {
  full_ = true;
  EXPECT_FALSE(Pause());
  Restart();
  EXPECT_EQ(pauses(), 0);
  full_ = false;
  ASSERT_TRUE(Pause());
  EXPECT_EQ(pauses(), 1);
  Restart();
  EXPECT_EQ(pauses(), 1);
  full_ = true;
  EXPECT_FALSE(Resume());
  EXPECT_EQ(pauses(), 0);
  Restart();
  // It is still to stand: the client was told that its Resume has failed.
  full_ = false;
  Restart();
  ASSERT_TRUE(Resume());
  EXPECT_EQ(pauses(), 0);
  EXPECT_THAT(context_.stored, IsEmpty());
}

TEST_F(SwitchTest, AnEngineKilledAmongItsDropsLeavesNoPauseBehind) {
  for (const int drops : {0, 1, 2}) {
    full_ = true;
    // Paused and resumed, and neither is kept.
    EXPECT_FALSE(Pause());
    full_ = false;
    context_.drops = drops;
    EXPECT_FALSE(Pause());
    context_.drops = DyingContext::kAlive;
    Restart();
    EXPECT_EQ(pauses(), 0) << drops << " drops";
    EXPECT_THAT(context_.stored, IsEmpty());
  }
}

TEST_F(SwitchTest, WhoResumesWhatNobodyHasPausedAsksNothing) {
  ASSERT_TRUE(Resume());
  ASSERT_TRUE(Pause());
  ASSERT_TRUE(Pause());
  EXPECT_EQ(pauses(), 1);
  ASSERT_TRUE(Resume());
  ASSERT_TRUE(Resume());
  EXPECT_EQ(pauses(), 0);
}

}  // namespace
}  // namespace gantry::gvisor
