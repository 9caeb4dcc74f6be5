// SPDX-License-Identifier: Apache-2.0
//
// A container for a pod of another handler. CRI has one handler for both, but what
// comes over the wire need not be CRI's: `ctr run --sandbox`, or a shim that is
// executed by another link with the annotation of a pod.
#include <list>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/pod_box.h"

namespace gantry::contract {
namespace {

using ::testing::HasSubstr;

class ForeignHandlers : public ContractTest {
 protected:
  void TearDown() override {
    for (Box& box : strangers_) {
      EXPECT_OK(box.Finish()) << box.id();
    }
    for (PodBox& pod : pods_) {
      EXPECT_OK(pod.Finish()) << pod.id();
    }
    ContractTest::TearDown();
  }

  static std::string Other() {
    return backend() == "runc" ? TheSetup().subjects.back().name : "runc";
  }

  PodBox& RunningPod() {
    PodBox& pod = pods_.emplace_back(node(), Id("-pod"), backend());
    EXPECT_TRUE(pod.Announce());
    EXPECT_OK(pod.Create());
    EXPECT_OK(pod.Start());
    return pod;
  }

  /// Its shim was executed by the link of `handler`; empty: by the plain name.
  Box& Stranger(const std::string& group, const std::string& handler) {
    Box& box =
        strangers_.emplace_back(node(), Id("-by" + handler), handler, BoxOptions{.group = group});
    EXPECT_TRUE(box.Announce());
    return box;
  }

  void ExpectRefused(const Box& stranger, const std::string& pod) {
    const auto refused = stranger.Create();
    EXPECT_CODE(refused, kInvalidArgument);
    EXPECT_THAT(MessageOf(refused), HasSubstr("it is for handler '" + Other() + "'"));
    EXPECT_THAT(MessageOf(refused),
                HasSubstr("sandbox '" + pod + "' is of handler '" + backend() + "'"));
    EXPECT_CODE(stranger.State(), kNotFound);
  }

 private:
  std::list<PodBox> pods_;
  std::list<Box> strangers_;
};

INSTANTIATE_CONTRACT(ForeignHandlers);

TEST_P(ForeignHandlers, AnotherThanThePodsIsRefused) {
  const PodBox& pod = RunningPod();
  const Box& member = Stranger(pod.id(), backend());
  ASSERT_OK(member.Create());
  ASSERT_OK(member.Start());
  ExpectRefused(Stranger(pod.id(), Other()), pod.id());
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
  EXPECT_EQ(Got(member.State()).status(), pb::RUNNING);
}

TEST_P(ForeignHandlers, AnotherThanThePauseContainersIsRefused) {
  const Box& pause = Running();
  ExpectRefused(Stranger(pause.id(), Other()), pause.id());
  EXPECT_EQ(Got(pause.State()).status(), pb::RUNNING);
}

TEST_P(ForeignHandlers, AnotherIsRefusedByANewEngineToo) {
  const PodBox& pod = RunningPod();
  const Box& stranger = Stranger(pod.id(), Other());
  node().KillEngine();
  ExpectRefused(stranger, pod.id());
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
}

TEST_P(ForeignHandlers, OfThePodIsTakenWhereNoneIsNamed) {
  const PodBox& pod = RunningPod();
  const Box& box = Stranger(pod.id(), "");
  ASSERT_OK(box.Create());
  ASSERT_OK(box.Start());
  EXPECT_EQ(Got(box.State()).status(), pb::RUNNING);
}

}  // namespace
}  // namespace gantry::contract
