// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/instances.h"

#include <sys/resource.h>

#include <gmock/gmock.h>

namespace gantry::keeper {
namespace {

link::Announce Named(const std::string& id, const std::string& ns = "default") {
  link::Announce announce;
  announce.id = id;
  announce.ns = ns;
  announce.grpc_address = "/run/c.sock";
  return announce;
}

TEST(SocketName, DiffersByEveryPart) {
  const std::string name = SocketName("/a", "b", "c");
  EXPECT_EQ(name.size(), 32U);
  EXPECT_EQ(name, SocketName("/a", "b", "c"));
  EXPECT_NE(name, SocketName("/a", "c", "b"));
  EXPECT_NE(name, SocketName("/a", "bc", ""));
  EXPECT_NE(name, SocketName("/x", "b", "c"));
}

TEST(Instances, KeepNamespacesApart) {
  Instances instances;
  const uint64_t one = instances.Add(Named("c", "one"), "/s/1", false).told.number;
  const uint64_t two = instances.Add(Named("c", "two"), "/s/2", false).told.number;
  EXPECT_NE(one, two);
  EXPECT_EQ(instances.Find("/run/c.sock", "one", "c")->told.number, one);
  EXPECT_EQ(instances.Find("/run/c.sock", "two", "c")->told.number, two);
  EXPECT_EQ(instances.Find("/other.sock", "two", "c"), nullptr);
}

TEST(Instances, CountWhoSharesASocket) {
  Instances instances;
  const uint64_t one = instances.Add(Named("a"), "/s/1", false).told.number;
  instances.Add(Named("b"), "/s/1", true);
  EXPECT_EQ(instances.At("/s/1").size(), 2U);
  EXPECT_EQ(instances.AnnouncedAt("/s/1"), 1U);
  instances.Remove(one);
  EXPECT_EQ(instances.AnnouncedAt("/s/1"), 0U);
  EXPECT_EQ(instances.At("/s/1").size(), 1U);
  EXPECT_TRUE(instances.At("/s/2").empty());
}

TEST(Instances, KeepTheLimitsThatAGroupWasAnnouncedWithFirst) {
  Instances instances;
  EXPECT_TRUE(instances.RlimitsAt("unix:///s/1").empty());
  const uint64_t silent = instances.Add(Named("of an earlier shim"), "/s/1", false).told.number;
  EXPECT_TRUE(instances.RlimitsAt("unix:///s/1").empty());
  for (const uint64_t soft : {10U, 20U}) {
    link::Announce announce = Named("c" + std::to_string(soft));
    announce.rlimits = {{RLIMIT_CORE, soft, 30}};
    instances.Add(std::move(announce), "/s/1", false);
  }
  instances.Remove(silent);
  Instances next;
  next.Restore(instances.Save());
  for (const Instances* one : {&instances, &next}) {
    ASSERT_EQ(one->RlimitsAt("unix:///s/1").size(), 1U);
    EXPECT_EQ(one->RlimitsAt("unix:///s/1").front().soft, 10U);
    EXPECT_TRUE(one->RlimitsAt("unix:///s/2").empty());
    EXPECT_TRUE(one->RlimitsAt("").empty());
  }
}

TEST(Instances, NameTheOldestOfTooManyTombstones) {
  Instances instances;
  for (size_t i = 0; i <= Instances::kMaxTombstones; ++i) {
    EXPECT_EQ(instances.SurplusTombstone(), nullptr);
    instances.Add(Named("c" + std::to_string(i)), "/s/1", false).told.forgotten = true;
  }
  ASSERT_NE(instances.SurplusTombstone(), nullptr);
  EXPECT_EQ(instances.SurplusTombstone()->told.announce.id, "c0");
}

}  // namespace
}  // namespace gantry::keeper
