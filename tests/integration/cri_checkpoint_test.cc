// SPDX-License-Identifier: Apache-2.0
//
// CRI's checkpoint of a container. Its streams are containerd's fifos, and those criu
// cannot save: it is refused with the reason, and the container goes on.
#include <filesystem>

#include "tests/integration/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriCheckpoint : public CriPodTest {
 protected:
  std::string Reason() {
    if (settings().release1()) {
      return "not implemented";
    }
    const bool has_criu = RunProgram({"sh", "-c", "command -v criu"}).status == 0;
    return has_criu ? "path=" + settings().root : "criu";
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriCheckpoint, kSandboxers, SandboxerName);

TEST_P(CriCheckpoint, IsRefusedWithTheReason) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  // criu wakes a sleep, and it ends.
  const std::string id =
      RunContainerIn(pod, config, "one", {"sh", "-c", "while :; do sleep 0.05; done"});
  const std::string archive = settings().root + "/" + Id() + ".tar";
  const Status refused = cri().Checkpoint(id, archive);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(Reason()), std::string::npos) << refused.error().message;
  EXPECT_EQ(StatusOf(id).state(), cri::CONTAINER_RUNNING);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 4"}).exit_code, 4);
  std::filesystem::remove(archive);
}

}  // namespace
}  // namespace gantry::e2e
