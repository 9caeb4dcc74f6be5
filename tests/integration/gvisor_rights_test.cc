// SPDX-License-Identifier: Apache-2.0
//
// What a container's processes may do, and what they see of the node, by what is asked for.
#include <unistd.h>

#include <array>

#include "tests/integration/harness/gvisor_test.h"

namespace gantry::e2e {
namespace {

class GvisorRights : public GvisorTest {};

/// The init's, too: containerd's usual list has CAP_NET_RAW.
TEST_F(GvisorRights, OfAnExecAreThoseOfTheInit) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const std::string own = Exec(id, {"grep", "Cap", "/proc/self/status"}).out;
  EXPECT_EQ(own, Exec(id, {"grep", "Cap", "/proc/1/status"}).out);
  EXPECT_THAT(own, testing::HasSubstr("CapEff:\t00000000a80405fb\n")) << "without CAP_NET_RAW";
  Remove(id);
}

TEST_F(GvisorRights, AContainerWithoutANameHasTheNodes) {
  std::array<char, 256> node{};
  ASSERT_EQ(gethostname(node.data(), node.size() - 1), 0);
  EXPECT_EQ(RunContainer({"--rm"}, Id(), {"hostname"}).out, std::string(node.data()) + "\n");
}

}  // namespace
}  // namespace gantry::e2e
