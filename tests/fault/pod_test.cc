// SPDX-License-Identifier: Apache-2.0
//
// Pods of CRI, of both kinds: each operation, with each step that goes wrong.
#include <filesystem>
#include <memory>

#include "tests/fault/harness/fault_test.h"

namespace gantry::fault {
namespace {

using e2e::ContainerConfig;
using e2e::PodConfig;

/// Two clients' names for what is made.
struct Made {
  PodConfig config;
  std::string pod;
  std::string container;
};

using MadePtr = std::shared_ptr<Made>;

class FaultPod : public FaultTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (is_shim() && !settings().sandbox_api()) {
      GTEST_SKIP() << settings().no_sandbox_api();
    }
    FaultTest::SetUp();
  }

  static bool is_shim() { return std::string_view(GetParam()) == "shim"; }

  std::string handler() const override { return is_shim() ? "gantry-shim" : "gantry"; }

  Step Run(const MadePtr& made) {
    return {.operation = "RunPodSandbox",
            .run = [=, this] { return Take(cri().RunPod(made->config), made->pod); },
            .check =
                [=, this] {
                  const auto status = cri().PodStatus(made->pod);
                  ASSERT_TRUE(status) << status.error().message;
                  EXPECT_EQ(status->status().state(), e2e::cri::SANDBOX_READY);
                }};
  }

  Status Create(const MadePtr& made) {
    ContainerConfig config;
    config.name = "one";
    config.command = {"sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do usleep 5000; done"};
    std::error_code error;
    std::filesystem::remove(LogOf(made), error);
    return Take(cri().Create(made->pod, made->config, config), made->container);
  }

  Step Creating(const MadePtr& made) {
    return {.operation = "CreateContainer",
            .run = [=, this] { return Create(made); },
            .check = IsIn(made, e2e::cri::CONTAINER_CREATED)};
  }

  Step Starting(const MadePtr& made) {
    return {.operation = "StartContainer",
            .run = [=, this] { return cri().Start(made->container); },
            .check =
                [=, this] {
                  // One that is stopped sooner ends as whoever handles no signal.
                  EXPECT_TRUE(e2e::WaitForText(LogOf(made), "ready"));
                  IsIn(made, e2e::cri::CONTAINER_RUNNING)();
                },
            .undo =
                [=, this] {
                  // containerd tries to start a container once.
                  const Status removed = cri().Remove(made->container);
                  EXPECT_TRUE(removed) << removed.error().message;
                  const Status created = Create(made);
                  EXPECT_TRUE(created) << created.error().message;
                }};
  }

  Step Exec(const MadePtr& made) {
    return {.operation = "ExecSync",
            .run = [=, this]() -> Status {
              GANTRY_TRY(
                  const auto done,
                  cri().Exec(made->container, {"sh", "-c", "echo out; echo err >&2; exit 5"}));
              EXPECT_EQ(done.exit_code, 5);
              EXPECT_EQ(done.out, "out\n");
              EXPECT_EQ(done.err, "err\n");
              return {};
            },
            .check = IsIn(made, e2e::cri::CONTAINER_RUNNING),
            .optional = true};
  }

  Step Optional(const char* operation, const MadePtr& made, std::function<Status()> run) {
    return {.operation = operation,
            .run = std::move(run),
            .check = IsIn(made, e2e::cri::CONTAINER_RUNNING),
            .optional = true};
  }

  std::vector<Step> Updates(const MadePtr& made) {
    std::vector<Step> steps = {
        Optional("UpdateContainerResources", made,
                 [=, this] { return cri().UpdateMemory(made->container, 64 << 20); }),
        Optional("ContainerStats", made, [=, this]() -> Status {
          GANTRY_TRY(const auto stats, cri().Stats(made->container));
          EXPECT_GT(stats.memory().working_set_bytes().value(), 0U);
          return {};
        })};
    if (is_shim() && !settings().release1()) {
      steps.push_back(Optional("UpdatePodSandboxResources", made, [=, this] {
        return cri().UpdatePodMemory(made->pod, {.resources = 128 << 20});
      }));
    }
    return steps;
  }

  std::vector<Step> Ends(const MadePtr& made) {
    return {
        {.operation = "StopContainer",
         .run = [=, this] { return cri().Stop(made->container, std::chrono::seconds(30)); },
         .check = [=, this] { EXPECT_EQ(StatusOf(made->container).exit_code(), 7); }},
        {.operation = "RemoveContainer",
         .run = [=, this] { return cri().Remove(made->container); }},
        {.operation = "StopPodSandbox", .run = [=, this] { return cri().StopPod(made->pod); }},
        {.operation = "RemovePodSandbox", .run = [=, this] { return cri().RemovePod(made->pod); }}};
  }

  Life Whole(const std::string& suffix) {
    const auto made = std::make_shared<Made>();
    made->config = Pod(suffix);
    Life life{.steps = {Run(made), Creating(made), Starting(made), Exec(made)}};
    for (auto part : {Updates(made), Ends(made)}) {
      std::ranges::move(part, std::back_inserter(life.steps));
    }
    life.end = [this](bool) {
      RemoveParents();
      const auto pods = cri().Pods();
      EXPECT_TRUE(pods && pods->empty());
      ExpectNoBundles();
    };
    life.give_up = [this] { RemovePods(); };
    return life;
  }

 private:
  static Status Take(Result<std::string> got, std::string& into) {
    GANTRY_TRY(into, std::move(got));
    return {};
  }

  static std::string LogOf(const MadePtr& made) { return made->config.log_directory + "/one.log"; }

  std::function<void()> IsIn(const MadePtr& made, e2e::cri::ContainerState state) {
    return [=, this] { EXPECT_EQ(StatusOf(made->container).state(), state); };
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, FaultPod, testing::Values("podsandbox", "shim"),
                         [](const auto& row) { return std::string(row.param); });

TEST_P(FaultPod, InEachStep) {
  Sweep(std::string("pod of ") + GetParam(),
        [this](const std::string& suffix) { return Whole(suffix); });
}

TEST_P(FaultPod, UpgradedInEachStep) {
  Sweep(
      std::string("pod of ") + GetParam(),
      [this](const std::string& suffix) { return Whole(suffix); }, Of::kUpgrades);
}

}  // namespace
}  // namespace gantry::fault
