// SPDX-License-Identifier: Apache-2.0
//
// Metrics, as a scraper on the node sees them: what containers do is in them, and they come back
// after kill -9 of the engine.

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "tests/harness/e2e_test.h"
#include "tests/unit/metrics/grammar.h"

namespace gantry::e2e {
namespace {

using test::MetricsText;
using test::SumOf;
using Labels = std::map<std::string, std::string>;

class CtrMetrics : public E2eTest {
 protected:
  void SetUp() override {
    E2eTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    if (settings().stock()) {
      GTEST_SKIP() << "the stock runtime has no engine";
    }
    // There is an engine once something runs.
    ASSERT_EQ(RunContainer({"--rm"}, Id("first"), {"true"}).status, 0);
    const auto text = ReadFile(config_, 1 << 20);
    ASSERT_TRUE(text) << text.error().message;
    configured_ = *text;
    ASSERT_TRUE(ReplaceFile(
        config_, configured_ + "metrics:\n  address: " + address_ + "\n  sandboxes: true\n", 0600));
    KillEngine();
  }

  void TearDown() override {
    if (!configured_.empty()) {
      EXPECT_TRUE(ReplaceFile(config_, configured_, 0600));
      KillEngine();
      unlink(address_.c_str());
    }
    E2eTest::TearDown();
  }

  /// Another one comes.
  static void KillEngine() {
    HostProcess engine;
    ASSERT_TRUE(Eventually([&] {
      engine = node().Engine();
      return engine.pid != 0;
    }));
    kill(engine.pid, SIGKILL);
    ASSERT_TRUE(WaitGone(engine.pid));
  }

  /// Nothing: nobody answers.
  std::optional<std::string> Ask(const std::string& accept) const {
    auto socket = ConnectUnix(address_);
    if (!socket || fcntl(socket->get(), F_SETFL, 0) != 0) {
      return std::nullopt;
    }
    const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: " + accept +
                                "\r\nConnection: close\r\n\r\n";
    if (write(socket->get(), request.data(), request.size()) !=
        static_cast<ssize_t>(request.size())) {
      return std::nullopt;
    }
    std::string answer;
    std::array<char, 65536> part{};
    for (ssize_t bytes = 1; bytes > 0;) {
      bytes = read(socket->get(), part.data(), part.size());
      answer.append(part.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    }
    return answer;
  }

  /// Empty: nobody answered.
  MetricsText Scrape(bool open_metrics = false) const {
    const auto answer = Ask(open_metrics ? "application/openmetrics-text" : "*/*");
    if (!answer || !answer->starts_with("HTTP/1.1 200 OK\r\n")) {
      return {};
    }
    auto read = test::ReadMetrics(answer->substr(answer->find("\r\n\r\n") + 4), open_metrics);
    EXPECT_TRUE(read) << read.error().message;
    return read ? std::move(*read) : MetricsText();
  }

  /// A page is up to 100 ms old.
  testing::AssertionResult Comes(const std::function<bool(const MetricsText&)>& expected) const {
    std::string last;
    const bool came = Eventually([&] {
      last = Ask("*/*").value_or("nobody answers");
      return expected(Scrape());
    });
    return came ? testing::AssertionSuccess() : testing::AssertionFailure() << last;
  }

  static std::string Backend() {
    return settings().gvisor()   ? "gvisor"
           : settings().wasm()   ? "wasm"
           : settings().vmm()    ? "vmm"
           : settings().remote() ? "remote"
                                 : "runc";
  }

  const std::string config_ = settings().root + "/gantry.yaml";
  const std::string address_ = settings().root + "/metrics.sock";
  std::string configured_;
};

TEST_F(CtrMetrics, CountWhatContainersDo) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 5"}).status, 5);
  EXPECT_EQ(Exec(id, {"true"}).status, 0);
  const Labels runs{{"backend", Backend()}, {"state", "running"}};
  EXPECT_TRUE(Comes([&](const MetricsText& seen) {
    return SumOf(seen, "gantry_containers", runs) == 1 &&
           SumOf(seen, "gantry_sandboxes", runs) == 1 &&
           SumOf(seen, "gantry_keeper_instances") == 1 &&
           SumOf(seen, "gantry_exits_total", {{"process", "exec"}, {"ending", "nonzero"}}) == 1 &&
           SumOf(seen, "gantry_exits_total", {{"process", "exec"}, {"ending", "zero"}}) == 1;
  }));
  const MetricsText seen = Scrape();
  const auto calls = [&](const std::string& call, const std::string& process) {
    return SumOf(seen, "gantry_call_duration_seconds_count",
                 {{"backend", Backend()}, {"call", call}, {"process", process}});
  };
  EXPECT_EQ(calls("Create", "init"), 1);
  EXPECT_EQ(calls("Start", "init"), 1);
  EXPECT_EQ(calls("Exec", "exec"), 2);
  EXPECT_EQ(calls("Start", "exec"), 2);
  EXPECT_EQ(calls("Delete", "exec"), 2);
  EXPECT_EQ(SumOf(seen, "gantry_rpc_answers_total", {{"method", "Create"}, {"code", "OK"}}), 1);
  EXPECT_EQ(SumOf(seen, "gantry_keeper_up"), 1);
  EXPECT_GE(SumOf(seen, "gantry_engine_starts_total"), 2);
  // Where others account for it is their backends' business.
  if (Backend() == "runc") {
    EXPECT_GT(SumOf(seen, "gantry_sandbox_memory_bytes", {{"id", id}}), 0);
  }
  EXPECT_EQ(SumOf(seen, "gantry_backend_in_use", {{"backend", Backend()}}), 1);
  EXPECT_FALSE(Scrape(true).empty()) << "in OpenMetrics, too";
  ASSERT_EQ(Ctr({"tasks", "kill", "-s", "KILL", id}).status, 0);
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  Remove(id);
  EXPECT_TRUE(Comes([&](const MetricsText& later) {
    return SumOf(later, "gantry_exits_total", {{"process", "init"}, {"ending", "signal"}}) == 1 &&
           SumOf(later, "gantry_containers") == 0;
  }));
}

TEST_F(CtrMetrics, BeginAnewWithAnotherEngineButForWhatTheKeeperKnows) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  MetricsText before;
  ASSERT_TRUE(Comes([&](const MetricsText& seen) {
    before = seen;
    return SumOf(seen, "gantry_call_duration_seconds_count", {{"call", "Create"}}) == 1;
  }));
  KillEngine();
  EXPECT_TRUE(Comes([&](const MetricsText& seen) {
    return SumOf(seen, "gantry_engine_starts_total") ==
               SumOf(before, "gantry_engine_starts_total") + 1 &&
           SumOf(seen, "gantry_engine_gaps_total") ==
               SumOf(before, "gantry_engine_gaps_total") + 1 &&
           SumOf(seen, "gantry_engine_gap_seconds_total") >
               SumOf(before, "gantry_engine_gap_seconds_total") &&
           SumOf(seen, "gantry_containers", {{"state", "running"}}) == 1 &&
           SumOf(seen, "gantry_call_duration_seconds_count", {{"call", "Create"}}) == 0;
  }));
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
