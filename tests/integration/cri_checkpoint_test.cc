// SPDX-License-Identifier: Apache-2.0
//
// CRI's checkpoint of a container by criu, whose streams are containerd's fifos, and
// its restore, in another pod, from the archive.
#include <cstdlib>
#include <filesystem>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

/// Counts in its memory, and shows it in its log and in a file.
const Words kCounts{"sh", "-c",
                    "i=0; while :; do i=$((i+1)); echo $i > /count; echo at-$i; sleep 0.05; done"};

class CriCheckpoint : public CriPodTest {
 protected:
  /// Why containerd or this machine cannot; empty: they can.
  std::string WhyNot() const {
    if (settings().release1()) {
      return "containerd 1.7 does not implement it";
    }
    if (!settings().AtLeast(2, 2)) {
      return "containerd before 2.2 asks a registry for the image of what it restores, by its hash";
    }
    const Output checked = RunProgram({"criu", "check"});
    return checked.status == 0 ? "" : "criu check: " + checked.Text();
  }

  int Count(const std::string& id) {
    std::string text;
    // Empty between the shell's opening and its writing.
    EXPECT_TRUE(Eventually([&] {
      text = Exec(id, {"cat", "/count"}).out;
      return !text.empty();
    }));
    return std::atoi(text.c_str());
  }

  std::string Archive() { return settings().root + "/" + Id() + ".tar"; }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriCheckpoint, kSandboxers, SandboxerName);

TEST_P(CriCheckpoint, GoesOnInAnotherPod) {
  if (const std::string reason = WhyNot(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  if (is_controller()) {
    GTEST_SKIP() << "containerd 2.3 restores a container without asking its sandbox for an address";
  }
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", kCounts);
  ASSERT_TRUE(Eventually([&] { return Count(id) > 20; }));
  const Status saved = cri().Checkpoint(id, Archive());
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  const int then = Count(id);
  EXPECT_TRUE(Eventually([&] { return Count(id) > then; })) << "the saved one goes on";

  const PodConfig other = Pod("-other");
  ContainerConfig container;
  container.name = "two";
  container.image = Archive();
  const std::string restored = RunContainerIn(RunPod(other), other, container);
  EXPECT_EQ(StatusOf(restored).state(), cri::CONTAINER_RUNNING);
  const int count = Count(restored);
  EXPECT_GT(count, 20);
  EXPECT_TRUE(WaitForText(other.log_directory + "/two.log", "at-" + std::to_string(count + 5)));
  EXPECT_TRUE(cri().Stop(restored, std::chrono::seconds(0)));
  EXPECT_EQ(WaitForEnd(restored).exit_code(), 137);
  std::filesystem::remove(Archive());
}

TEST_P(CriCheckpoint, IsRefusedWhereItIsNotImplemented) {
  if (!settings().release1() && !settings().remote()) {
    GTEST_SKIP() << "it is implemented";
  }
  const PodConfig config = Pod();
  const std::string id = RunContainerIn(RunPod(config), config, "one", {"sleep", "1000"});
  const Status refused = cri().Checkpoint(id, Archive());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not implemented"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
}

}  // namespace
}  // namespace gantry::e2e
