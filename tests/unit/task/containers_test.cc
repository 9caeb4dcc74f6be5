// SPDX-License-Identifier: Apache-2.0
#include "core/task/containers.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ContainerPtr Made(const std::string& id, uint64_t instance = 0) {
  auto group = std::make_shared<Group>();
  group->ns = *Namespace::Parse("k8s.io");
  group->id = "pod";
  auto container = std::make_shared<Container>(*ContainerId::Parse(id), std::move(group));
  container->instance = instance;
  return container;
}

InstanceKey KeyOf(const ContainerPtr& container) {
  return KeyOf(*container->group, container->id.str());
}

std::vector<std::string> Ids(const std::vector<ContainerPtr>& containers) {
  std::vector<std::string> ids;
  for (const ContainerPtr& container : containers) {
    ids.push_back(container->id.str());
  }
  return ids;
}

TEST(Containers, AreFoundUntilTheyLeave) {
  Containers containers;
  const ContainerPtr a = Made("a", 1);
  const ContainerPtr b = Made("b", 2);
  containers.Enter(a);
  containers.Enter(b);
  EXPECT_EQ(containers.Find(KeyOf(a)), a);
  EXPECT_EQ(containers.FindInstance(2), b);
  EXPECT_EQ(containers.SharedOf(*a), a);
  EXPECT_THAT(Ids(containers.All()), ElementsAre("a", "b"));
  containers.Leave(*a);
  EXPECT_EQ(containers.Find(KeyOf(a)), nullptr);
  EXPECT_EQ(containers.FindInstance(1), nullptr);
  EXPECT_EQ(containers.SharedOf(*a), nullptr);
  EXPECT_EQ(containers.size(), 1U);
}

TEST(Containers, AnEarlierOneDoesNotTakeItsSuccessorAlong) {
  Containers containers;
  const auto sandbox = std::make_shared<SandboxEntry>();
  const ContainerPtr earlier = Made("a", 1);
  const ContainerPtr later = Made("a", 2);
  containers.Enter(earlier);
  containers.SetSandbox(*earlier, sandbox);
  containers.Enter(later);
  EXPECT_THAT(containers.MembersOf(*sandbox), IsEmpty());
  containers.SetSandbox(*later, sandbox);
  containers.Leave(*earlier);
  EXPECT_EQ(containers.Find(KeyOf(later)), later);
  EXPECT_EQ(containers.SharedOf(*earlier), nullptr);
  EXPECT_THAT(containers.MembersOf(*sandbox), ElementsAre(later));
}

TEST(Containers, StandInOneSandbox) {
  Containers containers;
  const auto first = std::make_shared<SandboxEntry>();
  const auto second = std::make_shared<SandboxEntry>();
  const ContainerPtr b = Made("b");
  const ContainerPtr a = Made("a");
  containers.Enter(b);
  containers.Enter(a);
  containers.SetSandbox(*b, first);
  containers.SetSandbox(*a, first);
  containers.SetSandbox(*a, first);
  EXPECT_THAT(Ids(containers.MembersOf(*first)), ElementsAre("a", "b"));
  containers.SetSandbox(*b, second);
  EXPECT_THAT(Ids(containers.MembersOf(*first)), ElementsAre("a"));
  EXPECT_EQ(b->sandbox, second);
  containers.SetSandbox(*a, nullptr);
  EXPECT_THAT(containers.MembersOf(*first), IsEmpty());
  EXPECT_THAT(Ids(containers.MembersOf(*second)), ElementsAre("b"));
  EXPECT_EQ(a->sandbox, nullptr);
}

TEST(Containers, ThatLeaveAreNoMembersAnyMore) {
  Containers containers;
  const auto sandbox = std::make_shared<SandboxEntry>();
  const ContainerPtr a = Made("a");
  containers.Enter(a);
  containers.SetSandbox(*a, sandbox);
  containers.Leave(*a);
  EXPECT_THAT(containers.MembersOf(*sandbox), IsEmpty());
  EXPECT_EQ(a->sandbox, sandbox) << "its own business";
  containers.SetSandbox(*a, sandbox);
  EXPECT_THAT(containers.MembersOf(*sandbox), IsEmpty()) << "nobody finds it";
  containers.Enter(a);
  EXPECT_THAT(containers.MembersOf(*sandbox), ElementsAre(a));
}

TEST(Containers, MayGoWhileTheirListIsGoneThrough) {
  Containers containers;
  const auto sandbox = std::make_shared<SandboxEntry>();
  for (const std::string id : {"a", "b", "c"}) {
    const ContainerPtr container = Made(id);
    containers.Enter(container);
    containers.SetSandbox(*container, sandbox);
  }
  for (const ContainerPtr& member : containers.MembersOf(*sandbox)) {
    containers.Leave(*member);
  }
  EXPECT_EQ(containers.size(), 0U);
}

TEST(Containers, TellWhoElseHasACgroup) {
  Containers containers;
  const ContainerPtr a = Made("a");
  const ContainerPtr b = Made("b");
  a->cgroup_dirs = {"/sys/fs/cgroup/x"};
  containers.Enter(a);
  containers.Enter(b);
  EXPECT_EQ(containers.FindOtherIn("/sys/fs/cgroup/x", *b), a);
  EXPECT_EQ(containers.FindOtherIn("/sys/fs/cgroup/x", *a), nullptr);
  EXPECT_EQ(containers.FindOtherIn("/sys/fs/cgroup", *b), nullptr);
}

TEST(Containers, TellWhichSandboxesAreUsed) {
  Containers containers;
  const ContainerPtr a = Made("a");
  const ContainerPtr b = Made("b");
  a->sandbox_prefix = "1/sandbox";
  b->sandbox_prefix = "2/sandbox";
  containers.Enter(a);
  containers.Enter(b);
  EXPECT_THAT(containers.SandboxPrefixes(), ElementsAre("1/sandbox", "2/sandbox"));
  EXPECT_THAT(containers.PrefixesInUse(*a), IsEmpty()) << "nothing of it is there";
  containers.SetSandbox(*b, std::make_shared<SandboxEntry>());
  EXPECT_THAT(containers.PrefixesInUse(*a), ElementsAre("2/sandbox"));
  EXPECT_THAT(containers.PrefixesInUse(*b), IsEmpty());
}

}  // namespace
}  // namespace gantry::task
