// SPDX-License-Identifier: Apache-2.0
//
// What operators are told of: it goes on over ends of the engine, and what happens to engine and
// keeper themselves is among it.
#include <signal.h>

#include <algorithm>
#include <future>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/ctl/client.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

/// A keeper and an engine of this test alone.
class EventFeedContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    NodeAdditions more;
    more.sections = "hang: {after: 1s}\n";
    ASSERT_EQ(node_.Start(more), "");
  }

  std::string address() const { return node_.run_dir() + "/gantry.sock"; }

  Result<v1::EventsResponse> Ask(const v1::EventsRequest& request) const {
    GANTRY_TRY(auto client, ctl::OperatorClient::Connect(address()));
    return client.Events(request);
  }

  /// The types of all that there is about `id`; empty: about engine and keeper, too.
  std::vector<std::string> Types(const std::string& id = "") const {
    v1::EventsRequest request;
    request.set_id(id);
    std::vector<std::string> types;
    const v1::EventsResponse page = Got(Ask(request));
    for (const v1::Event& event : page.events()) {
      types.push_back(event.type());
    }
    return types;
  }

  bool Comes(const std::string& type, size_t times = 1) const {
    return e2e::Eventually(
        [&] { return std::ranges::count(Types(), type) >= static_cast<std::ptrdiff_t>(times); });
  }

  Box MakeBox(const std::string& id) {
    return Box(node_, id, "runc", BoxOptions{.args = {"sleep", "1000"}});
  }

  static void Run(Box& box) {
    EXPECT_TRUE(box.Announce());
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
  }

  Node node_;
};

TEST_F(EventFeedContract, TellsOfALifeOverEnginesEnds) {
  Box box = MakeBox("one");
  Run(box);
  node_.KillEngine();
  EXPECT_OK(box.Exec("x", {"sh", "-c", "exit 5"}));
  EXPECT_OK(box.Start("x"));
  EXPECT_OK(box.Wait("x"));
  EXPECT_OK(box.Delete("x"));
  node_.KillEngine();
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  EXPECT_OK(box.Delete());
  EXPECT_THAT(Types("one"),
              ElementsAre("container.created", "container.started", "exec.added", "exec.started",
                          "exec.exited", "container.exited", "container.deleted"));
  EXPECT_TRUE(Comes("engine.started", 3));
  EXPECT_OK(box.Finish());
}

TEST_F(EventFeedContract, KeepsWhoWaitsWaitingOverAnEnginesEnd) {
  ASSERT_TRUE(Comes("engine.started"));
  v1::EventsRequest request;
  request.set_id("one");
  request.set_wait_ms(60'000);
  auto first = std::async(std::launch::async, [&] { return Ask(request); });
  ASSERT_TRUE(e2e::Eventually([&] { return Got(node_.Query()).requests_waiting > 0; }));
  node_.KillEngine();
  Box box = MakeBox("one");
  Run(box);
  const auto answer = first.get();
  ASSERT_OK(answer);
  ASSERT_GT(answer->events_size(), 0);
  EXPECT_EQ(answer->events(0).type(), "container.created");
  EXPECT_OK(box.Finish());
}

TEST_F(EventFeedContract, TellsWhichPodAContainerIsIn) {
  PodBox pod(node_, "pod", "runc");
  ASSERT_TRUE(pod.Announce());
  ASSERT_OK(pod.Create());
  ASSERT_OK(pod.Start());
  Box box(node_, "in", "runc", BoxOptions{.args = {"sleep", "1000"}, .group = "pod"});
  box.Join(pod.client().path());
  ASSERT_OK(box.Create());
  ASSERT_OK(box.Start());
  EXPECT_OK(box.Finish());
  EXPECT_OK(pod.Finish());
  EXPECT_THAT(
      Types("pod"),
      IsSupersetOf({"sandbox.created", "sandbox.started", "container.created", "container.started",
                    "container.exited", "container.deleted", "sandbox.exited", "sandbox.deleted"}));
}

TEST_F(EventFeedContract, TellsOfEngineAndKeeper) {
  ASSERT_TRUE(Comes("engine.started"));
  ASSERT_OK(node_.Upgrade());
  EXPECT_TRUE(Comes("engine.upgraded"));
  const auto program = ReadLink("/proc/" + std::to_string(node_.keeper()) + "/exe");
  ASSERT_TRUE(program);
  ASSERT_OK(node_.UpgradeKeeper(*program));
  EXPECT_TRUE(Comes("keeper.upgraded"));
  EXPECT_TRUE(Signal(node_.Engine(), SIGSTOP));
  EXPECT_TRUE(Comes("engine.hung"));
}

}  // namespace
}  // namespace gantry::contract
