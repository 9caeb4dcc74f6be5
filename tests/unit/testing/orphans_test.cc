// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/pipe.h>

namespace gantry {
namespace {

constexpr std::chrono::seconds kOrphanLimit{20};

TEST(Orphans, AreAdoptedAndTellHowTheyEnd) {
  FakeSandboxContext context(Orphans::kAdopted);
  auto out = MakeBlockingPipe().value();
  auto gate = MakeBlockingPipe().value();
  SpawnRequest request;
  // A shell may collect a child that ends before itself.
  request.argv = {"/bin/sh", "-c", "(read _; exit 5) <&3 >/dev/null & echo $!"};
  request.env = {"PATH=/usr/bin:/bin"};
  request.fds.emplace_back(std::move(out.second), 1);
  request.fds.emplace_back(std::move(gate.first), 3);
  const auto parent = context.Spawn(std::move(request)).value();
  const HostPid pid{std::stoi(ReadStream(out.first))};
  ASSERT_TRUE(parent->Wait(kOrphanLimit));
  const auto orphan = context.AdoptAs(pid, "orphan");
  ASSERT_TRUE(orphan) << orphan.error().message;
  gate.second.reset();
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
