// SPDX-License-Identifier: Apache-2.0
#include "core/task/stdio_host.h"

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>

#include "core/async/worker_pool.h"
#include "core/io/process_io.h"
#include "core/io/relay.h"
#include "tests/unit/keeper_client/engine_test.h"

namespace gantry::task {
namespace {

using StdioHostTest = keeper_client::EngineTest;

TEST_F(StdioHostTest, IsThereForAsLongAsItsStreams) {
  async::WorkerPool pool(loop_, 1, 1);
  const cgroup::CgroupHierarchy cgroups;
  io::Relay relay;
  auto host = std::make_shared<StdioHost>(
      backend::Services{loop_, pool, *link_, *processes_, cgroups}, "1/io/", "", [] {});
  const std::weak_ptr<StdioHost> seen = host;
  auto opened = io::ProcessIo::Open(relay, *host, {}, {});
  ASSERT_TRUE(opened) << opened.error().message;
  std::shared_ptr<io::ProcessIo> streams = WithHost(*std::move(opened), host);
  host.reset();
  EXPECT_FALSE(seen.expired());
  streams->Close();
  streams.reset();
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace gantry::task
