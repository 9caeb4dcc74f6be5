// SPDX-License-Identifier: Apache-2.0
//
// What a backend has for itself, no sandbox's: lent once, and over with its engine, but for what
// a sandbox has taken over.
#include <atomic>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/process/process_id.h>

#include "core/config/config.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

/// As a backend does whose engine is killed: it lets go of nothing.
void Hold(std::shared_ptr<HostProcess> process) {
  static auto* const held = new std::vector<std::shared_ptr<HostProcess>>();
  held->push_back(std::move(process));
}

class OwnContext : public TaskTest {
 protected:
  OwnContext() {
    backend_.WhenAttached([this](SandboxContext& context, const auto& handlers) {
      if (spawns_) {
        SpawnRequest request;
        request.argv = {"/bin/own"};
        request.tag = "own";
        auto process = context.Spawn(std::move(request));
        ASSERT_TRUE(process) << process.error().message;
        Hold(std::move(*process));
      }
      if (asks_) {
        asks_(context);
      }
      const std::lock_guard lock(mutex_);
      ++attached_;
      handlers_.clear();
      for (const BackendHandler& handler : handlers) {
        handlers_.push_back(handler.name + " " + handler.options_json);
      }
    });
  }

  int attached() {
    const std::lock_guard lock(mutex_);
    return attached_;
  }

  ProcessId Own() const { return keeper_.named.at("backend:runc/own/own"); }

  /// What a backend does when it is attached.
  bool spawns_ = false;
  std::function<void(SandboxContext&)> asks_;
  /// Guards what follows: a worker attaches.
  std::mutex mutex_;
  int attached_ = 0;
  std::vector<std::string> handlers_;
};

TEST_F(OwnContext, IsLentOnceWithAllHandlers) {
  around_.config.handlers["fast"].backend = "runc";
  around_.config.handlers["fast"].options.json = R"({"n":1})";
  around_.config.handlers["other"].backend = "other";
  RestartEngine();
  EXPECT_EQ(attached(), 0);
  Run("c1");
  Run("c2");
  EXPECT_EQ(attached(), 1);
  EXPECT_THAT(handlers_, ElementsAre(R"(fast {"n":1})", "runc {}"));
}

TEST_F(OwnContext, IsLentBeforeAnybodyAsksForASandbox) {
  std::promise<void> gate;
  std::atomic<bool> attaching = false;
  asks_ = [&](SandboxContext&) {
    attaching = true;
    gate.get_future().wait();
  };
  Announce("c1");
  Announce("c2");
  const uint32_t first = Send("Create", CreateRequest("c1"), "c1");
  EXPECT_TRUE(Until([&] { return attaching.load(); }));
  const uint32_t second = Send("Create", CreateRequest("c2"), "c2");
  // The second one has come as far as it can while the first one's Attach is held.
  Settle(1);
  EXPECT_THAT(backend_.Calls(), IsEmpty());
  gate.set_value();
  EXPECT_TRUE(Take(first));
  EXPECT_TRUE(Take(second));
}

TEST_F(OwnContext, IsLentAtTheStartWhereSomethingIsToBeReady) {
  around_.config.handlers["runc"].options.json = R"({"warm":1})";
  RestartEngine();
  EXPECT_TRUE(Until([this] { return attached() == 1; }));
  Run("c1");
  EXPECT_EQ(attached(), 1);
}

TEST_F(OwnContext, OfAnEngineBeforeIsEnded) {
  spawns_ = true;
  Run("c1");
  const ProcessId before = Own();
  spawns_ = false;
  RestartEngine();
  EXPECT_TRUE(Until([&] { return std::ranges::contains(keeper_.acknowledged, before); }));
}

TEST_F(OwnContext, OfThisEngineStays) {
  spawns_ = true;
  around_.config.handlers["runc"].options.json = R"({"warm":1})";
  RestartEngine();
  ASSERT_TRUE(Until([this] { return attached() == 1; }));
  Settle();
  EXPECT_THAT(keeper_.acknowledged, IsEmpty());
}

TEST_F(OwnContext, StaysWhereASandboxHasTakenItOver) {
  spawns_ = true;
  Run("c1");
  const ProcessId own = Own();
  keeper_.AddOrphan(own.pid, own.start_time);
  backend_.BindTo("c2", {own.pid});
  Run("c2");
  spawns_ = false;
  for (int engine = 0; engine < 2; ++engine) {
    RestartEngine();
    ASSERT_TRUE(State("c2"));
    Settle();
    EXPECT_THAT(keeper_.acknowledged, Not(Contains(own)));
  }
}

TEST_F(OwnContext, KeepsNothing) {
  std::vector<Code> codes;
  asks_ = [&](SandboxContext& context) {
    UniqueFd fd(dup(0));
    codes = {context.Store("x", fd).error().code, context.Take("x").error().code,
             context.Save("x").error().code, context.Bind(nullptr).error().code};
  };
  Run("c1");
  EXPECT_THAT(codes, ElementsAre(Code::kResourceExhausted, Code::kNotFound,
                                 Code::kFailedPrecondition, Code::kInvalidArgument));
}

TEST_F(OwnContext, OfABackendThatThrowsIsNoHindrance) {
  asks_ = [](SandboxContext&) { throw std::runtime_error("out of luck"); };
  Run("c1");
  EXPECT_TRUE(State("c1"));
}

}  // namespace
}  // namespace gantry::task
