// SPDX-License-Identifier: Apache-2.0
//
// Memory of guests: what bounds the linear memory, what ends a guest that takes more than its
// cgroup has, and what is told of that.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/harness/events.h"
#include "tests/harness/wasm_pod.h"
#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

constexpr int64_t kGuestMiB = 1 << 20;

class WasmMemory : public WasmTest {};

/// 16 pages are 1 MiB, 1024 are 64 MiB.
TEST_F(WasmMemory, BeyondTheContainersLimitIsRefusedByTheEngine) {
  const Output output =
      RunGuest({"pages", "16", "1024", "16"}, {"--memory-limit", std::to_string(32 * kGuestMiB)});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "16: grown\n1024: -1\n16: grown\n");
}

TEST_F(WasmMemory, BeyondItsAnnotationIsRefusedByTheEngine) {
  const Output output =
      RunGuest({"pages", "16", "1024", "16"}, {"--annotation", "io.gantry.wasm/memory=32Mi"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "16: grown\n1024: -1\n16: grown\n");
}

TEST_F(WasmMemory, WithoutALimitIsTheGuestsToAskFor) {
  const Output output = RunGuest({"pages", "1024"});
  EXPECT_EQ(output.out, "1024: grown\n") << output.Text();
}

TEST_F(WasmMemory, ThatRunsOutIsToldBeforeTheEnd) {
  Events events(node());
  const std::string id = Id();
  const Output output =
      RunContainer(WithGuests({"--rm", "--memory-limit", std::to_string(32 * kGuestMiB),
                               "--annotation", "io.gantry.wasm/memory=1Gi"}),
                   id, Tool({"grow", "100"}));
  EXPECT_EQ(output.status, 137) << output.Text();
  const auto topics = Events::Topics(events.Until("/tasks/exit", id, id));
  const auto oom = std::ranges::find(topics, "oom");
  ASSERT_NE(oom, topics.end()) << ::testing::PrintToString(topics);
  EXPECT_LT(oom, std::ranges::find(topics, "exit"));
}

class WasmPodMemory : public OneWasmPodTest {
 protected:
  void TearDown() override {
    if (!steps_.empty()) {
      std::filesystem::remove_all(steps_);
    }
    OneWasmPodTest::TearDown();
  }

  /// A guest that has said "ready", and goes on to `end` when it is told to.
  std::string RunStepping(const std::string& name, const std::string& end, int64_t limit) {
    steps_ = settings().root + "/steps";
    std::filesystem::create_directories(steps_);
    ContainerConfig container = Container(name, Guest({"steps", "/steps", "1", end}));
    container.memory_limit_bytes = limit;
    Bind(container, steps_, "/steps");
    const std::string id = Run(container);
    EXPECT_TRUE(WaitForText(LogOf(name), "ready"));
    return id;
  }

  void ExpectLimit(const std::string& id, int64_t limit) const {
    EXPECT_EQ(ReadText(MemoryLimitFile(config().cgroup_parent + "/" + id)),
              std::to_string(limit) + "\n");
  }

  void LetGo() const { WriteText(steps_ + "/1", ""); }

 private:
  std::string steps_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmPodMemory, kSandboxers, SandboxerName);

/// The limit of the linear memory stays what it was: above the new one of the cgroup.
TEST_P(WasmPodMemory, IsUpdatedAndRunsOut) {
  const std::string id = RunStepping("grows", "grow", 512 * kGuestMiB);
  ASSERT_TRUE(cri().UpdateMemory(id, 24 * kGuestMiB));
  ExpectLimit(id, 24 * kGuestMiB);
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  LetGo();
  const cri::ContainerStatus status = WaitForEnd(id);
  EXPECT_EQ(status.exit_code(), 137);
  EXPECT_EQ(status.reason(), "OOMKilled");
}

TEST_P(WasmPodMemory, IsUpdatedToMore) {
  const std::string id = RunStepping("holds", "hold", 64 * kGuestMiB);
  ASSERT_TRUE(cri().UpdateMemory(id, 96 * kGuestMiB));
  ExpectLimit(id, 96 * kGuestMiB);
  LetGo();
  EXPECT_TRUE(WaitForText(LogOf("holds"), "holds"));
}

}  // namespace
}  // namespace gantry::e2e
