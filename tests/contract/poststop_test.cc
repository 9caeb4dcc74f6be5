// SPDX-License-Identifier: Apache-2.0
//
// A container's poststop hooks run once, whoever ends it: its Delete, or the shim without a keeper.
// By the keeper without an engine, in its own time: `DeletesTest.WithoutAnEngine*`.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <list>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

/// A keeper and an engine of this test alone. The parameter: the OCI runtime.
class Poststop : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    if (e2e::RunProgram({"sh", "-c", "command -v " + GetParam()}).status != 0) {
      GTEST_SKIP() << GetParam() << " is not installed";
    }
    const Json options = {{"BinaryName", GetParam()}, {"Root", node_.root() + "/oci"}};
    NodeAdditions more;
    more.handlers = "  hooked: {backend: runc, options: " + options.dump() + "}\n";
    ASSERT_EQ(node_.Start(more), "");
    ASSERT_EQ(mkfifo(gate().c_str(), 0600), 0);
  }

  void TearDown() override {
    for (Box& box : boxes_) {
      IgnoreError(node_.ShimDelete(box.id(), box.bundle()), "a test that cares has done it");
    }
  }

  std::string log() const { return node_.root() + "/hooks"; }

  std::string gate() const { return node_.root() + "/gate"; }

  /// Its hook writes what it is told of the container.
  Box& Running(const std::string& then = "") {
    const std::string script = "cat >>" + log() + "; echo >>" + log() + "; " + then;
    BoxOptions options;
    options.spec = {
        {"hooks", {{"poststop", {{{"path", "/bin/sh"}, {"args", {"sh", "-c", script}}}}}}}};
    Box& box = boxes_.emplace_back(node_, "one", "hooked", std::move(options));
    EXPECT_TRUE(box.Announce()) << node_.Log();
    EXPECT_OK(box.Create());
    EXPECT_OK(box.Start());
    EXPECT_EQ(e2e::ReadText(log()), "");
    return box;
  }

  void KillTheKeeper() const {
    const pid_t engine = node_.Engine();
    ASSERT_TRUE(Signal(node_.keeper(), SIGKILL));
    EXPECT_TRUE(Signal(engine, SIGKILL) || errno == ESRCH);
    EXPECT_TRUE(e2e::WaitGone(engine));
  }

  /// As containerd executes the shim.
  e2e::Output Shim(const Box& box) const {
    const std::string command = "cd " + box.bundle() + " && GANTRY_RUN_DIR=" + node_.run_dir() +
                                " exec " + GANTRY_SHIM + " -namespace " + kNamespace +
                                " -address " + node_.root() + "/containerd.sock -id " + box.id() +
                                " delete";
    return e2e::RunProgram({"sh", "-c", command});
  }

  void ExpectOneRun() const {
    const std::string told = e2e::ReadText(log());
    EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
    EXPECT_THAT(told, ::testing::HasSubstr("stopped"));
  }

  Node node_;
  std::list<Box> boxes_;
};

INSTANTIATE_TEST_SUITE_P(Runtimes, Poststop, ::testing::Values("crun", "runc"),
                         [](const auto& parameter) { return parameter.param; });

TEST_P(Poststop, WithDelete) {
  Box& box = Running();
  EXPECT_OK(box.Finish());
  ExpectOneRun();
}

TEST_P(Poststop, WithoutKeeperAndEngine) {
  Box& box = Running();
  ASSERT_NO_FATAL_FAILURE(KillTheKeeper());
  const e2e::Output deleted = Shim(box);
  EXPECT_EQ(deleted.status, 0) << deleted.err;
  ExpectOneRun();
  EXPECT_FALSE(Exists(node_.root() + "/oci/" + kNamespace + "/one"));
}

TEST_P(Poststop, WithoutKeeperAndEngineOfOneThatHasEnded) {
  Box& box = Running();
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  ASSERT_NO_FATAL_FAILURE(KillTheKeeper());
  EXPECT_EQ(Shim(box).status, 0);
  ExpectOneRun();
}

TEST_P(Poststop, OfADeleteThatOutlivesKeeperAndEngine) {
  Box& box = Running("read -r line <" + gate());
  EXPECT_OK(box.Kill(SIGKILL));
  EXPECT_OK(box.Wait());
  auto cut_short = std::async(std::launch::async, [&] { return box.Delete(); });
  EXPECT_TRUE(e2e::Eventually([&] { return e2e::ReadText(log()).ends_with('\n'); }));
  ASSERT_NO_FATAL_FAILURE(KillTheKeeper());
  EXPECT_FALSE(cut_short.get());
  auto deleted = std::async(std::launch::async, [&] { return Shim(box); });
  e2e::WriteText(gate(), "on\n");
  EXPECT_EQ(deleted.get().status, 0);
  ExpectOneRun();
}

}  // namespace
}  // namespace gantry::contract
