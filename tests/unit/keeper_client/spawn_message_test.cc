// SPDX-License-Identifier: Apache-2.0
#include "core/keeper_client/spawn_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/os/fs.h"

namespace gantry::keeper_client {
namespace {

using testing::ElementsAre;

// The whole process by its only thread: for `cgroup.procs` each spawn would wait for all
// processors.
TEST(SpawnMessage, HasTheChildWriteItselfIntoTheTasksOfACgroupThatIsNotUnified) {
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir);
  SpawnRequest request;
  request.argv = {"/bin/true"};
  request.cgroups = {dir->path()};
  std::vector<UniqueFd> fds;
  const auto message = ToSpawnMessage(request, fds);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_THAT(message->cgroup_tasks, ElementsAre(dir->path() + "/tasks"));
  EXPECT_FALSE(message->cgroup_fd);
  EXPECT_TRUE(fds.empty());
}

}  // namespace
}  // namespace gantry::keeper_client
