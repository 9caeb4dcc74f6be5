// SPDX-License-Identifier: Apache-2.0
#include "core/task/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/link/messages.h"

namespace gantry::task {
namespace {

link::InstanceAdded Announced(uint64_t number, const std::string& id, const std::string& group) {
  link::InstanceAdded added;
  added.number = number;
  added.announce.id = id;
  added.announce.ns = "k8s.io";
  added.announce.group = group;
  added.address = "unix:///s/" + group;
  return added;
}

TEST(Instances, OfOneGroupShareIt) {
  Instances instances;
  const auto pod = instances.Add(Announced(1, "p", "p"));
  const auto container = instances.Add(Announced(2, "c", "p"));
  ASSERT_TRUE(pod && container);
  EXPECT_EQ(*pod, *container);
  EXPECT_EQ(instances.NumberOf(KeyOf(**pod, "c")), 2U);
  EXPECT_EQ(*instances.GroupAt("unix:///s/p"), *pod);
}

TEST(Instances, TheLastOneEndsTheGroup) {
  Instances instances;
  ASSERT_TRUE(instances.Add(Announced(1, "p", "p")));
  ASSERT_TRUE(instances.Add(Announced(2, "c", "p")));
  EXPECT_FALSE(instances.Remove(1)->last);
  const auto removed = instances.Remove(2);
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->last);
  EXPECT_EQ(removed->group->id, "p");
  EXPECT_EQ(instances.GroupAt("unix:///s/p").error().code, Code::kNotFound);
  EXPECT_FALSE(instances.Remove(2)) << "it is gone";
}

TEST(Instances, AnnouncedAnewIsTheOneThatCounts) {
  Instances instances;
  const auto group = instances.Add(Announced(1, "c", "c"));
  ASSERT_TRUE(instances.Add(Announced(2, "c", "c")));
  ASSERT_TRUE(instances.Remove(1));
  EXPECT_EQ(instances.NumberOf(KeyOf(**group, "c")), 2U);
}

TEST(Instances, ForgottenIsFoundBySuchOnly) {
  Instances instances;
  link::InstanceAdded ended = Announced(1, "c", "c");
  ended.forgotten = true;
  const auto group = instances.Add(ended);
  EXPECT_EQ(instances.NumberOf(KeyOf(**group, "c")), 0U);
  ASSERT_NE(instances.FindForgotten("unix:///s/c", "c"), nullptr);
  EXPECT_EQ(instances.FindForgotten("unix:///s/c", "d"), nullptr);
}

TEST(Instances, WithoutANamespaceIsRefused) {
  Instances instances;
  link::InstanceAdded bad = Announced(1, "c", "c");
  bad.announce.ns = "a/b";
  EXPECT_EQ(instances.Add(bad).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(instances.all().empty());
  EXPECT_FALSE(instances.GroupAt("unix:///s/c"));
}

}  // namespace
}  // namespace gantry::task
