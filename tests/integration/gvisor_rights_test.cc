// SPDX-License-Identifier: Apache-2.0
//
// What a container's processes may do, and what they see of the node, by what is asked for.
#include <unistd.h>

#include <array>

#include <gmock/gmock.h>

#include "tests/harness/gvisor_test.h"

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

/// A sentry gives an exec the limits of its sandbox's root, whatever it is sent: the one process
/// of a container that its own spec's count for is the init.
TEST_F(GvisorRights, LimitsOfAnExecAreThoseOfTheSandboxsRoot) {
  const Words show{"sh", "-c", "ulimit -n; ulimit -Hn"};
  const auto limited = [](Words flags, const std::string& limit) {
    flags.insert(flags.end(), {"--rlimit-nofile", limit});
    return flags;
  };
  const std::string root = Id("-root");
  const std::string further = Id("-further");
  StartDetached(root, {"sleep", "1000"}, limited(AsRoot(root), "2000:3000"));
  EXPECT_EQ(Exec(root, show).out, "2000\n3000\n");
  const Words flags = limited(AsFurther(root), "4000:5000");
  Words once = flags;
  once.emplace_back("--rm");
  EXPECT_EQ(RunContainer(once, Id("-init"), show).out, "4000\n5000\n");
  StartDetached(further, {"sleep", "1000"}, flags);
  EXPECT_EQ(Exec(further, show).out, "2000\n3000\n");
  Remove(further);
  Remove(root);
}

TEST_F(GvisorRights, AContainerWithoutANameHasTheNodes) {
  std::array<char, 256> node{};
  ASSERT_EQ(gethostname(node.data(), node.size() - 1), 0);
  EXPECT_EQ(RunContainer({"--rm"}, Id(), {"hostname"}).out, std::string(node.data()) + "\n");
}

}  // namespace
}  // namespace gantry::e2e
