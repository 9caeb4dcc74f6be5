// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry {
namespace {

constexpr std::chrono::seconds kOrphanLimit{20};

/// The pid of a grandchild that its parent has left, as the parent has printed it.
HostPid Orphan(FakeSandboxContext& context, const std::string& script) {
  auto out = MakeBlockingPipe().value();
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "(" + script + ") >/dev/null & echo $!"};
  request.env = {"PATH=/usr/bin:/bin"};
  request.fds.emplace_back(std::move(out.second), 1);
  const auto parent = context.Spawn(std::move(request)).value();
  const std::string pid = ReadStream(out.first);
  EXPECT_TRUE(parent->Wait(kOrphanLimit));
  return {std::stoi(pid)};
}

TEST(Orphans, AreAdoptedAndTellHowTheyEnd) {
  FakeSandboxContext context(Orphans::kAdopted);
  const HostPid pid = Orphan(context, "exit 5");
  const auto orphan = context.AdoptAs(pid, "orphan");
  ASSERT_TRUE(orphan) << orphan.error().message;
  EXPECT_EQ((*orphan)->Wait(kOrphanLimit).value().code(), 5U);
  EXPECT_EQ(context.Adopt(pid).value(), *orphan) << "the same object";
  context.RestartEngine();
  EXPECT_EQ(context.FindSpawned("orphan"), *orphan);
}

TEST(Orphans, ThatNeverWereAreNotFound) {
  FakeSandboxContext context(Orphans::kAdopted);
  EXPECT_EQ(context.Adopt({4194999}).error().code, Code::kNotFound);
}

TEST(Orphans, DoNotTakeTheEndsOfChildren) {
  FakeSandboxContext context(Orphans::kAdopted);
  const auto one = RunShell("exit 1").value();
  const auto two = RunShell("exit 2").value();
  EXPECT_EQ(two->Wait(kOrphanLimit).value().code(), 2U);
  EXPECT_EQ(one->Wait(kOrphanLimit).value().code(), 1U);
}

}  // namespace
}  // namespace gantry
