// SPDX-License-Identifier: Apache-2.0
//
// Names at the keeper: as keepers of before have them, and whose they are.
#include "core/link/name_owner.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gantry::link {
namespace {

struct Named {
  NameOwner owner;
  std::string own;
  std::string name;
};

TEST(NameOwner, WritesAndReadsTheNamesThatKeepersHave) {
  const std::vector<Named> all = {
      {NameOwner::Process(7, ""), "stdout-r", "7//io/stdout-r"},
      {NameOwner::Process(7, "x1"), "console", "7/x1/io/console"},
      {NameOwner::Sandbox(12), "backend/agent", "12/sandbox/backend/agent"},
      {NameOwner::Sandbox(12), "create/web", "12/sandbox/create/web"},
      {NameOwner::Sandbox(12), "server", "12/sandbox/server"},
      {NameOwner::Backend("gvisor"), "warm/1", "backend:gvisor/own/warm/1"},
  };
  for (const auto& [owner, own, name] : all) {
    EXPECT_EQ(owner.Name(own), name);
    EXPECT_TRUE(name.starts_with(owner.Prefix()));
    EXPECT_EQ(NameOwner::Read(name), owner) << name;
    EXPECT_EQ(NameOwner::Read(owner.Text()), owner) << owner.Text();
  }
}

TEST(NameOwner, TakesStreamsOfAnExecCalledSandboxForThose) {
  const NameOwner exec = NameOwner::Process(13, "sandbox");
  EXPECT_EQ(NameOwner::Read(exec.Name("stdout-r")), exec);
  EXPECT_NE(exec.Prefix(), NameOwner::Sandbox(13).Prefix());
}

TEST(NameOwner, OfWhatIsNoneIsUnknown) {
  for (const char* const name : {"", "/", "7", "7/", "7/x1", "7/x1/y/z", "sandbox/7", "0/sandbox/a",
                                 "-1/sandbox/a", "7a/sandbox/b", "backend:x", "backend:x/y"}) {
    const NameOwner owner = NameOwner::Read(name);
    EXPECT_EQ(owner, NameOwner()) << name;
    EXPECT_EQ(owner.Prefix(), "");
  }
}

TEST(NameOwner, CountsAllOfAnInstanceOnce) {
  EXPECT_EQ(ShareOf("7//io/stdout-r"), ShareOf("7/sandbox/backend/x"));
  EXPECT_EQ(InstanceOfShare(ShareOf("7/sandbox/backend/x")), 7U);
  EXPECT_EQ(InstanceOfShare(ShareOf("backend:x/own/y")), 0U);
  EXPECT_EQ(InstanceOfShare(""), 0U);
}

}  // namespace
}  // namespace gantry::link
