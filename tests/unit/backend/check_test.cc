// SPDX-License-Identifier: Apache-2.0
#include "core/backend/check.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/backend/retired.h"
#include "core/log/log.h"

namespace gantry::backend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CheckTest : public testing::Test {
 protected:
  CheckTest() {
    log::SetSinkForTest([this](std::string_view line) { log_ += line; });
  }

  ~CheckTest() override { log::SetSinkForTest({}); }

  std::string log_;
};

TEST_F(CheckTest, LeavesExitsThatCanBe) {
  const ExitStatus exit = CheckExit("wasm", "c1", {137, 5});
  EXPECT_EQ(exit.status, 137U);
  EXPECT_EQ(exit.exited_at_ns, 5);
  EXPECT_EQ(log_, "");
}

TEST_F(CheckTest, MendsExitsThatCannot) {
  for (const int64_t at :
       {int64_t{0}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    const ExitStatus exit = CheckExit("wasm", "c1", {std::numeric_limits<uint32_t>::max(), at});
    EXPECT_EQ(exit.status, 255U);
    EXPECT_GT(exit.exited_at_ns, 0);
    EXPECT_NE(exit.exited_at_ns, at);
  }
  EXPECT_THAT(log_, HasSubstr("backend=wasm"));
}

TEST_F(CheckTest, KnowsPids) {
  EXPECT_TRUE(CheckPid("wasm", "c1", HostPid{2}));
  for (const int32_t pid : {-1, 0, 1, std::numeric_limits<int32_t>::max()}) {
    EXPECT_FALSE(CheckPid("wasm", "c1", HostPid{pid})) << pid;
  }
  EXPECT_THAT(log_, HasSubstr("backend=wasm"));
}

TEST_F(CheckTest, TakesOnlyDirectoriesOfItsOwn) {
  EXPECT_THAT(
      CheckStateDirs("wasm", "c1",
                     {"/run/wasm/c1", "/", "", "/run", "run/wasm", "/run/../etc/x", "/run//x",
                      "/run/x/", std::string("/run/x\0y", 8), "/run/" + std::string(5000, 'x')}),
      ElementsAre("/run/wasm/c1"));
  EXPECT_THAT(log_, HasSubstr("backend=wasm"));
}

TEST_F(CheckTest, TakesOnlyCommandsThatCanBeKeptAndRun) {
  const HostCommand good{{"/bin/crun", "delete", "c1"}, {"PATH=/bin"}, "/run/b"};
  EXPECT_TRUE(CheckCleanup("wasm", "c1", good));
  EXPECT_EQ(log_, "");
  std::vector<HostCommand> bad(5, good);
  bad[0].argv.clear();
  bad[1].argv[0] = "crun";
  bad[2].cwd = "b";
  bad[3].argv[2] = std::string("c\0", 2);
  bad[4].env[0].append(16384, 'x');
  for (const HostCommand& command : bad) {
    EXPECT_FALSE(CheckCleanup("wasm", "c1", command));
  }
  EXPECT_THAT(log_, HasSubstr("backend=wasm"));
}

TEST(Retire, KeepsTheLastOnes) {
  const auto first = std::make_shared<int>(1);
  const std::weak_ptr<int> kept = first;
  Retire(std::shared_ptr<void>(first));
  EXPECT_EQ(kept.use_count(), 2);
  for (size_t i = 0; i < kMaxRetired; ++i) {
    Retire(std::make_shared<int>(2));
  }
  EXPECT_EQ(kept.use_count(), 1);
  Retire(nullptr);
}

TEST(Retire, ForgetsOldOnes) {
  Retire(std::make_shared<int>(1));
  EXPECT_GT(ForgetRetired(std::chrono::hours(1)), 0U);
  EXPECT_EQ(ForgetRetired(std::chrono::nanoseconds(0)), 0U);
}

}  // namespace
}  // namespace gantry::backend
