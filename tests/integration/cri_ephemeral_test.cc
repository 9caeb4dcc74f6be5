// SPDX-License-Identifier: Apache-2.0
//
// Ephemeral containers (`kubectl debug --target`): one that joins the processes of
// a running container of its pod.
#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriEphemeral : public CriPodTest {
 protected:
  void SetUp() override {
    CriPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    config_ = Pod();
    pod_ = RunPod(config_);
    target_ = RunContainerIn(pod_, config_, Sleeper("target", "1001"));
  }

  /// One with processes of its own.
  static ContainerConfig Sleeper(const std::string& name, const std::string& seconds) {
    ContainerConfig container;
    container.name = name;
    container.command = {"sleep", seconds};
    container.pid = cri::CONTAINER;
    return container;
  }

  ContainerConfig Debugger(const std::string& target) const {
    ContainerConfig container = Sleeper("debugger", "1003");
    container.pid = cri::TARGET;
    container.pid_target = target;
    return container;
  }

  const PodConfig& config() const { return config_; }

  const std::string& pod() const { return pod_; }

  const std::string& target() const { return target_; }

 private:
  PodConfig config_;
  std::string pod_;
  std::string target_;
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriEphemeral, kSandboxers, SandboxerName);

TEST_P(CriEphemeral, SeesTheProcessesOfItsTarget) {
  const std::string id = RunContainerIn(pod(), config(), Debugger(target()));
  EXPECT_EQ(Exec(id, {"readlink", "/proc/self/ns/pid"}).out,
            Exec(target(), {"readlink", "/proc/self/ns/pid"}).out);
  const std::string seen = Exec(id, {"ps"}).out;
  EXPECT_NE(seen.find("sleep 1001"), std::string::npos) << seen;
  EXPECT_NE(seen.find("sleep 1003"), std::string::npos) << seen;
  EXPECT_NE(Exec(id, {"sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline"}).out.find("sleep 1001"),
            std::string::npos);
}

TEST_P(CriEphemeral, SeesTheFilesOfItsTarget) {
  const std::string id = RunContainerIn(pod(), config(), Debugger(target()));
  EXPECT_EQ(Exec(id, {"touch", "/proc/1/root/left-by-the-debugger"}).exit_code, 0);
  EXPECT_EQ(Exec(target(), {"ls", "/left-by-the-debugger"}).exit_code, 0);
}

TEST_P(CriEphemeral, OfSeveralSeesTheProcessesOfItsTarget) {
  const std::string other = RunContainerIn(pod(), config(), Sleeper("other", "1002"));
  const std::string id = RunContainerIn(pod(), config(), Debugger(target()));
  EXPECT_NE(Exec(id, {"readlink", "/proc/self/ns/pid"}).out,
            Exec(other, {"readlink", "/proc/self/ns/pid"}).out);
  const std::string seen = Exec(id, {"ps"}).out;
  EXPECT_NE(seen.find("sleep 1001"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("sleep 1002"), std::string::npos) << seen;
  EXPECT_TRUE(cri().Stop(target(), std::chrono::seconds(0)));
  EXPECT_EQ(WaitForEnd(id).exit_code(), 137);
  EXPECT_EQ(StatusOf(other).state(), cri::CONTAINER_RUNNING);
}

TEST_P(CriEphemeral, GoesWithoutItsTarget) {
  const std::string id = RunContainerIn(pod(), config(), Debugger(target()));
  EXPECT_TRUE(cri().Stop(id, std::chrono::seconds(0)));
  EXPECT_TRUE(cri().Remove(id));
  EXPECT_EQ(StatusOf(target()).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(target(), {"sh", "-c", "exit 4"}).exit_code, 4);
  EXPECT_EQ(Exec(target(), {"ps"}).out.find("sleep 1003"), std::string::npos);
}

TEST_P(CriEphemeral, EndsWithItsTarget) {
  const std::string id = RunContainerIn(pod(), config(), Debugger(target()));
  EXPECT_TRUE(cri().Stop(target(), std::chrono::seconds(0)));
  EXPECT_EQ(WaitForEnd(id).exit_code(), 137) << "its processes were the target's";
}

TEST_P(CriEphemeral, NeedsATargetThatRuns) {
  EXPECT_TRUE(cri().Stop(target(), std::chrono::seconds(0)));
  const auto id = cri().Create(pod(), config(), Debugger(target()));
  const Status refused = id ? cri().Start(*id) : Status(std::unexpected(id.error()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(target()), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace gantry::e2e
