// SPDX-License-Identifier: Apache-2.0
//
// Calls into a backend that never return: more of them than it has workers. Other sandboxes of
// the same backend go on, and who hangs is told so.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <list>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "core/ctl/client.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// As many as a backend has workers by default, and as one sandbox gets for calls that may
/// take long.
constexpr int kBackendWorkers = 10;
constexpr int kLongOfOne = 4;

class LostWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(mkfifo(gate().c_str(), 0600), 0);
    NodeAdditions more;
    for (const std::string name : {"block-Stats", "block-Exec", "watch-Stats", "block-Nothing"}) {
      const size_t dash = name.find('-');
      more.handlers +=
          "  " + name + ": {backend: misbehave, options: " +
          Json{{"Mode", name.substr(0, dash)}, {"In", name.substr(dash + 1)}, {"Gate", gate()}}
              .dump() +
          "}\n";
    }
    const std::string programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    more.backends = "  misbehave: {path: '" + programs + "/libgantry_misbehave.so'}\n";
    more.timeouts = ", exec_start: 1s, pause: 1s";
    ASSERT_EQ(node_.Start(more), "");
  }

  void TearDown() override {
    if (IsSkipped()) {
      return;
    }
    OpenGate();
    for (Box& box : boxes_) {
      IgnoreError(node_.ShimDelete(box.id(), box.bundle()), "it may not be there");
    }
    if (HasFailure()) {
      std::fprintf(stderr, "--- the keeper's and the engine's log:\n%s---\n", node_.Log().c_str());
    }
  }

  std::string gate() const { return node_.root() + "/gate"; }

  /// What blocks goes on, now and from now on.
  void OpenGate() { gate_.reset(open(gate().c_str(), O_RDWR | O_CLOEXEC)); }

  Box& Running(const std::string& id, const std::string& handler) {
    Box& box = boxes_.emplace_back(node_, id, handler);
    EXPECT_TRUE(box.Announce()) << node_.Log();
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
    return box;
  }

  /// Calls that are not waited for.
  void MeasureTimes(const Box& box, int times) {
    pb::StatsRequest request;
    request.set_id(box.id());
    for (int i = 0; i < times; ++i) {
      auto sent = box.client().Begin<pb::StatsResponse>("Stats", request);
      ASSERT_OK(sent);
      measuring_.push_back(std::move(*sent));
    }
  }

  uint32_t Lost() const {
    auto client = ctl::OperatorClient::Connect(node_.run_dir() + "/gantry.sock");
    EXPECT_OK(client);
    const v1::StatusResponse status = client ? Got(client->EngineStatus()) : v1::StatusResponse();
    for (const v1::BackendStatus& backend : status.backends()) {
      if (backend.name() == "misbehave") {
        EXPECT_LE(backend.lost_workers(), status.lost_workers());
        return backend.lost_workers();
      }
    }
    return 0;
  }

  void ExpectLost(uint32_t count) {
    ASSERT_TRUE(e2e::Eventually([&] { return Lost() >= count; }, e2e::kLong)) << Lost();
  }

  /// The life of another sandbox of that backend.
  void ExpectOthersWork() {
    Box& box = Running("ninth", "block-Nothing");
    EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
    EXPECT_OK(box.Exec("x", {"true"}));
    EXPECT_OK(box.Start("x"));
    EXPECT_OK(box.Kill(SIGKILL, "x"));
    EXPECT_OK(box.Wait("x"));
    EXPECT_OK(box.Delete("x"));
    EXPECT_OK(box.Kill(SIGKILL));
    EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
    EXPECT_OK(box.Delete());
    EXPECT_OK(box.Finish());
  }

  /// All come back when the calls do.
  void ExpectNoneIsLostInTheEnd() {
    OpenGate();
    EXPECT_TRUE(e2e::Eventually([&] { return Lost() == 0; }, e2e::kLong)) << Lost();
  }

  Node node_;
  std::list<Box> boxes_;
  std::list<Pending<pb::StatsResponse>> measuring_;

 private:
  UniqueFd gate_;
};

TEST_F(LostWorkers, OfTwoSandboxesWithAllTheirCalls) {
  const Box& one = Running("one", "block-Stats");
  const Box& two = Running("two", "block-Stats");
  MeasureTimes(one, kBackendWorkers);
  MeasureTimes(two, kBackendWorkers);
  ExpectOthersWork();
  ExpectLost(2 * kLongOfOne);
  ExpectOthersWork();
  EXPECT_TRUE(e2e::WaitForText(node_.log_path(), "a worker is lost in measure 'one'"));
  ExpectNoneIsLostInTheEnd();
}

TEST_F(LostWorkers, OfManySandboxesWithOneCallEach) {
  for (int i = 0; i < kBackendWorkers; ++i) {
    Running("many" + std::to_string(i), "block-Stats");
  }
  for (const Box& box : boxes_) {
    MeasureTimes(box, 1);
  }
  ExpectOthersWork();
  ExpectLost(kBackendWorkers);
  ExpectOthersWork();
  ExpectNoneIsLostInTheEnd();
}

TEST_F(LostWorkers, OfOneSandboxWithCallsAndWatches) {
  const Box& one = Running("one", "watch-Stats");
  const Box& two = Running("two", "watch-Stats");
  MeasureTimes(one, kBackendWorkers);
  MeasureTimes(two, kBackendWorkers);
  ExpectOthersWork();
  ExpectNoneIsLostInTheEnd();
}

TEST_F(LostWorkers, AreSaidToWhoseTheyAre) {
  const Box& box = Running("one", "block-Exec");
  std::list<Pending<pb::StartResponse>> starting;
  for (int i = 0; i < kLongOfOne; ++i) {
    const std::string exec = "x" + std::to_string(i);
    EXPECT_OK(box.Exec(exec, {"true"}));
    pb::StartRequest request;
    request.set_id(box.id());
    request.set_exec_id(exec);
    auto sent = box.client().Begin<pb::StartResponse>("Start", request);
    ASSERT_OK(sent);
    starting.push_back(std::move(*sent));
  }
  ExpectLost(kLongOfOne);
  EXPECT_OK(box.Exec("more", {"true"}));
  const auto refused = box.Start("more");
  EXPECT_CODE(refused, kUnavailable);
  EXPECT_THAT(MessageOf(refused), AllOf(HasSubstr("sandbox 'one'"), HasSubstr("exec in 'one'")));
  // It can be ended all the same.
  EXPECT_OK(box.State());
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  ExpectNoneIsLostInTheEnd();
}

}  // namespace
}  // namespace gantry::contract
