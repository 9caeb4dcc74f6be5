// SPDX-License-Identifier: Apache-2.0
#include "core/engine/event_feed.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

#include "tests/unit/async/loop_driver.h"
#include "tests/unit/async/simulated_loop.h"

namespace gantry::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EventFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    auto memfd = CreateMemfd("feed-test");
    ASSERT_TRUE(memfd) << memfd.error().message;
    memfd_ = std::move(*memfd);
    Open();
  }

  /// As the next engine does.
  void Open() {
    auto feed = EventFeed::Open(loop_, *memfd_.Duplicate());
    ASSERT_TRUE(feed) << feed.error().message;
    feed_ = std::move(*feed);
  }

  static events::Subject Subject(const std::string& id) {
    return {"/c.ttrpc", *Namespace::Parse("k8s.io"), *ContainerId::Parse(id)};
  }

  void Tell(const events::Event& event, const std::string& sandbox = "") {
    feed_->OnTask(event, sandbox);
  }

  v1::EventsResponse Read(const v1::EventsRequest& request) {
    auto answer = test::Await(loop_, feed_->Read(call_, request));
    EXPECT_TRUE(answer) << answer.error().message;
    return std::move(*answer);
  }

  /// "TYPE ID", with what else there is.
  std::vector<std::string> TextsOf(const v1::EventsResponse& response) {
    std::vector<std::string> texts;
    for (const v1::Event& event : response.events()) {
      std::string text = event.type() + (event.id().empty() ? "" : " ") + event.id();
      if (!event.exec_id().empty()) {
        text += "/" + event.exec_id();
      }
      if (!event.sandbox_id().empty()) {
        text += " in " + event.sandbox_id();
      }
      if (event.pid() != 0) {
        text += " pid " + std::to_string(event.pid());
      }
      if (event.type().ends_with(".exited")) {
        text += " status " + std::to_string(event.exit_status());
      }
      texts.push_back(text);
    }
    return texts;
  }

  std::vector<std::string> All() { return TextsOf(Read({})); }

  test::SimulatedLoop loop_;
  UniqueFd memfd_;
  std::unique_ptr<EventFeed> feed_;
  rpc::CallContext call_;
};

TEST_F(EventFeedTest, TellsOfContainers) {
  const ExecId none;
  const ExecId exec = *ExecId::Parse("x1");
  events::TaskCreateFields created;
  created.pid = 7;
  Tell(events::TaskCreate(Subject("c"), created), "pod");
  Tell(events::TaskStart(Subject("c"), 7), "pod");
  Tell(events::TaskExecAdded(Subject("c"), exec));
  Tell(events::TaskExecStarted(Subject("c"), exec, 8));
  Tell(events::TaskExit(Subject("c"), exec, 8, {3, 1}));
  Tell(events::TaskOom(Subject("c")));
  Tell(events::TaskExit(Subject("c"), none, 7, {137, 1}));
  Tell(events::TaskDelete(Subject("c"), 7, {137, 1}));
  EXPECT_THAT(All(),
              ElementsAre("container.created c in pod pid 7", "container.started c in pod pid 7",
                          "exec.added c/x1", "exec.started c/x1 pid 8",
                          "exec.exited c/x1 pid 8 status 3", "container.oom c",
                          "container.exited c pid 7 status 137", "container.deleted c pid 7"));
}

TEST_F(EventFeedTest, TellsOfSandboxes) {
  const Namespace ns = *Namespace::Parse("k8s.io");
  const SandboxId id = *SandboxId::Parse("pod");
  for (const char* what : {"created", "started"}) {
    feed_->OnSandbox({what, ns, id, 5});
  }
  feed_->OnSandbox({"exited", ns, id, 5, {9, 1}});
  EXPECT_THAT(All(), ElementsAre("sandbox.created pod pid 5", "sandbox.started pod pid 5",
                                 "sandbox.exited pod pid 5 status 9"));
}

TEST_F(EventFeedTest, GivesWhatIsAskedFor) {
  Tell(events::TaskStart(Subject("a"), 1), "pod");
  Tell(events::TaskStart(Subject("b"), 2));
  feed_->OnUp({.version = "1", .pid = 3}, nullptr);
  v1::EventsRequest request;
  request.set_id("pod");
  EXPECT_THAT(TextsOf(Read(request)), ElementsAre("container.started a in pod pid 1"));
  request.set_id("b");
  const v1::EventsResponse one = Read(request);
  EXPECT_THAT(TextsOf(one), ElementsAre("container.started b pid 2"));
  EXPECT_EQ(one.events(0).number(), 2U);
  EXPECT_EQ(one.last(), 3U) << "what is not wanted has been seen, too";
  request.set_namespace_("default");
  EXPECT_THAT(TextsOf(Read(request)), IsEmpty());
  v1::EventsRequest later;
  later.set_since_ns(one.events(0).time_ns() + 1'000'000'000'000);
  EXPECT_THAT(TextsOf(Read(later)), IsEmpty());
}

TEST_F(EventFeedTest, AnswersWhoWaitsWithTheNextOne) {
  v1::EventsRequest request;
  request.set_wait_ms(60'000);
  std::optional<Result<v1::EventsResponse>> answer;
  async::Start(test::Store(feed_->Read(call_, request), &answer));
  test::RunAllReady(loop_);
  EXPECT_FALSE(answer);
  EXPECT_TRUE(call_.abandonment->parked()) << "another engine can as well answer it";
  Tell(events::TaskStart(Subject("a"), 1));
  test::RunAllReady(loop_);
  ASSERT_TRUE(answer && *answer);
  EXPECT_THAT(TextsOf(**answer), ElementsAre("container.started a pid 1"));
}

TEST_F(EventFeedTest, LetsOneWaitOnForWhatHeWants) {
  v1::EventsRequest request;
  request.set_wait_ms(60'000);
  request.set_id("b");
  std::optional<Result<v1::EventsResponse>> answer;
  async::Start(test::Store(feed_->Read(call_, request), &answer));
  Tell(events::TaskStart(Subject("a"), 1));
  test::RunAllReady(loop_);
  EXPECT_FALSE(answer);
  loop_.Advance(std::chrono::seconds(59));
  EXPECT_FALSE(answer);
  loop_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->events_size(), 0);
  EXPECT_EQ((*answer)->last(), 1U);
}

TEST_F(EventFeedTest, LetsGoOfWhoHasGone) {
  v1::EventsRequest request;
  request.set_wait_ms(60'000);
  std::optional<Result<v1::EventsResponse>> answer;
  async::Start(test::Store(feed_->Read(call_, request), &answer));
  test::RunAllReady(loop_);
  call_.abandonment->Happen();
  test::RunAllReady(loop_);
  EXPECT_TRUE(answer);
}

TEST_F(EventFeedTest, TellsASlowReaderHowMuchHeLost) {
  constexpr uint64_t kMany = 3000;
  for (uint64_t i = 0; i < kMany; ++i) {
    Tell(events::TaskStart(Subject("a"), 1));
  }
  v1::EventsRequest request;
  request.set_after(1);
  uint64_t lost = 0;
  uint64_t seen = 0;
  for (;;) {
    const v1::EventsResponse page = Read(request);
    lost += page.lost();
    seen += static_cast<uint64_t>(page.events_size());
    request.set_after(page.last());
    if (page.events_size() == 0) {
      break;
    }
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(lost + seen, kMany - 1);
}

TEST_F(EventFeedTest, FindsOutWhatHasHappenedToTheEngines) {
  link::KeeperStatus keeper;
  keeper.keeper_pid = 4;
  feed_->OnUp({.version = "1", .pid = 10}, &keeper);
  Open();
  keeper.engine_hangs = 1;
  feed_->OnUp({.version = "1", .pid = 11}, &keeper);
  keeper.keeper_upgrades = 1;
  feed_->OnKeeper(keeper);
  Open();
  feed_->OnUp({.version = "2", .pid = 12, .took_over = true}, &keeper);
  EXPECT_THAT(All(), ElementsAre("engine.started pid 10", "engine.hung", "engine.started pid 11",
                                 "keeper.upgraded pid 4", "engine.upgraded pid 12"));
}

}  // namespace
}  // namespace gantry::engine
