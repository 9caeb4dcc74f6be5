// SPDX-License-Identifier: Apache-2.0
//
// What users of other runtimes with machines have reported, as far as no other file is about it.
#include <thread>

#include <gmock/gmock.h>

#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

class VmmReport : public VmmPodTest {};

INSTANTIATE_TEST_SUITE_P(Sandboxer, VmmReport, testing::Values("podsandbox"), SandboxerName);

// K14: the supplementary groups, of which fsGroup is one, are an exec's too.
TEST_P(VmmReport, AnExecHasTheGroupsOfItsContainer) {
  ContainerConfig container = Container("one", "id -u; id -g; id -G; exec sleep 100000");
  container.user = 1000;
  container.group = 2000;
  container.groups = {3000, 4000};
  const std::string id = RunContainerIn(pod(), config(), container);
  EXPECT_TRUE(WaitForText(LogOf("one"), "stdout F 2000 3000 4000\n"));
  EXPECT_EQ(Says(id, "id -u; id -g; id -G"), "1000\n2000\n2000 3000 4000\n");
}

// U10: neither pods nor execs leave a descriptor of engine and keeper, or a thread.
TEST_P(VmmReport, PodsAndExecsLeaveNothingBehind) {
  const std::string id = Run("one");
  const auto descriptors = [&] {
    return CountDescriptors(node().Engine().pid) + CountDescriptors(node().Keeper().pid);
  };
  const auto live = [&](int number) {
    const PodConfig next = Pod("-" + std::to_string(number));
    const std::string other = RunPod(next);
    const std::string inner = RunContainerIn(other, next, Container("one", "exec sleep 100000"));
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(Exec(inner, {"echo", "on"}).out, "on\n");
      EXPECT_EQ(Exec(id, {"echo", "on"}).out, "on\n");
    }
    EXPECT_TRUE(cri().StopPod(other));
    EXPECT_TRUE(cri().RemovePod(other));
  };
  // What is made once is made now.
  live(0);
  const int before = descriptors();
  live(1);
  live(2);
  // The connection for events comes and goes; two pods would leave two.
  EXPECT_TRUE(Eventually([&] { return descriptors() <= before + 1; }))
      << before << " before, now " << descriptors();
}

// K9: whoever comes first, all are answered, and nothing is left.
TEST_P(VmmReport, StopsOfAllKindsAtOnceEndTheMachineOnce) {
  const std::string id = Run("one");
  std::vector<std::jthread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] { EXPECT_TRUE(cri().StopPod(pod())); });
    clients.emplace_back([&] { EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0))); });
  }
  clients.clear();
  EXPECT_TRUE(cri().StopPod(pod()));
  ExpectNoMachine(node());
}

}  // namespace
}  // namespace gantry::e2e
