// SPDX-License-Identifier: Apache-2.0
//
// Which pods are forwarded into, and one whose node cannot.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/gvisor/pod/forwarding.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PodForwardTest : public testing::Test {
 protected:
  static PodRecord InNetns(const std::string& path) {
    PodRecord record;
    record.netns = path;
    return record;
  }

  FakeSandboxContext context_;
  Pod pod_{SandboxId::Parse("p1").value(), Namespace::Parse("test").value(), context_, Options(),
           Flags()};
};

TEST_F(PodForwardTest, GoesOnWithoutAndSaysSo) {
  // There is no gantry-forward beside this test.
  pod_.Load(InNetns("/proc/self/ns/net"));
  ForwardPorts(pod_);
  EXPECT_THAT(context_.log, ElementsAre(HasSubstr("ports cannot be forwarded into this sandbox")));
  EXPECT_EQ(pod_.forward(), nullptr);
  EXPECT_TRUE(StopForwarding(pod_));
}

TEST_F(PodForwardTest, IsNotForAPodOnTheNodesNetwork) {
  pod_.Load(InNetns("/proc/self/ns/net"));
  pod_.UseHostNetwork();
  ForwardPorts(pod_);
  EXPECT_THAT(context_.log, IsEmpty());
}

TEST_F(PodForwardTest, IsNotForANetworkThatNobodyElseCanFind) {
  pod_.Load(InNetns(""));
  ForwardPorts(pod_);
  EXPECT_THAT(context_.log, IsEmpty());
}

}  // namespace
}  // namespace gantry::gvisor
