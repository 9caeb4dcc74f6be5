// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl delete --all`: the end of everything on a node that has no containerd any
// more.
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "core/ctl/commands.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Keeper and engine of this test alone.
class DeleteAll : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    ASSERT_EQ(node_.Start(), "");
  }

  struct Said {
    int status = 0;
    std::string out;
    std::string err;
  };

  Said Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--address", node_.run_dir() + "/gantry.sock"});
    std::ostringstream out;
    std::ostringstream err;
    const int status = ctl::RunCommand(words, out, err);
    return {status, out.str(), err.str()};
  }

  /// The init of a container that runs.
  pid_t Start(Box& box) {
    EXPECT_OK(box.Create());
    return static_cast<pid_t>(Got(box.Start()).pid());
  }

  size_t Instances() const { return Got(node_.Query()).instances.size(); }

  Node node_;
};

TEST_F(DeleteAll, EndsContainersAndPods) {
  Box box(node_, "one", "runc");
  ASSERT_TRUE(box.Announce());
  const pid_t init = Start(box);
  ASSERT_OK(box.Exec("x", {"sleep", "1000"}));
  const auto exec = static_cast<pid_t>(Got(box.Start("x")).pid());
  PodBox pod(node_, "pod", "runc");
  ASSERT_TRUE(pod.Announce());
  ASSERT_OK(pod.Create());
  const auto holder = static_cast<pid_t>(Got(pod.Start()).pid());
  const Said said = Run({"delete", "--all"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("'one' is deleted"), HasSubstr("'pod' is deleted")));
  for (const pid_t pid : {init, exec, holder}) {
    EXPECT_TRUE(pid <= 0 || e2e::WaitGone(pid)) << pid;
  }
  EXPECT_EQ(Instances(), 0U);
  EXPECT_OK(box.Finish());
  EXPECT_OK(pod.Finish());
}

TEST_F(DeleteAll, OfOneNamespaceLeavesTheOthers) {
  Box box(node_, "one", "runc");
  ASSERT_TRUE(box.Announce());
  Start(box);
  const Said said = Run({"delete", "--all", "-n", "somebody-else"});
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
  EXPECT_OK(box.Finish());
}

TEST_F(DeleteAll, IsSaidOrAnIdAndNotBoth) {
  EXPECT_THAT(Run({"delete"}).err, HasSubstr("either an ID or --all"));
  EXPECT_THAT(Run({"delete", "one", "--all"}).err, HasSubstr("either an ID or --all"));
}

}  // namespace
}  // namespace gantry::contract
