// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/pid_namespaces.h"

#include <gtest/gtest.h>

namespace gantry::gvisor {
namespace {

ContainerId Id(const char* text) { return *ContainerId::Parse(text); }

bool Runs() { return true; }

TEST(PidNamespaces, OfAPodIsSharedWhereNoOtherIs) { EXPECT_EQ(PidNamespaces().Shared(), ""); }

TEST(PidNamespaces, OfTheOnlyContainerIsShared) {
  PidNamespaces all;
  all.Add(Id("one"), Runs);
  EXPECT_EQ(all.Shared(), PidNamespaces::NameOf(Id("one")));
  EXPECT_NE(PidNamespaces::NameOf(Id("one")), PidNamespaces::NameOf(Id("one-1")));
}

TEST(PidNamespaces, OfOneThatHasEndedOrIsGoneIsNot) {
  PidNamespaces all;
  bool runs = true;
  all.Add(Id("ended"), [&] { return runs; });
  all.Add(Id("gone"), Runs);
  all.Add(Id("one"), Runs);
  EXPECT_EQ(all.Shared().error().code, Code::kFailedPrecondition) << "which of them?";
  runs = false;
  EXPECT_FALSE(all.Shared());
  all.Remove(Id("gone"));
  EXPECT_EQ(all.Shared(), PidNamespaces::NameOf(Id("one")));
  all.Remove(Id("one"));
  EXPECT_EQ(all.Shared(), "");
}

}  // namespace
}  // namespace gantry::gvisor
