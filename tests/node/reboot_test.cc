// SPDX-License-Identifier: Apache-2.0
//
// What a reboot leaves. The tests of BeforeReboot leave containers and a pod; the
// node is powered off with them and boots again: /run is empty then, and containerd
// still lists them from its disk. The tests of AfterReboot find them there.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "tests/node/harness/pods.h"

namespace gantry::node {
namespace {

using testing::Contains;
using testing::Not;

// For AfterReboot, which is another run of the program.
std::string StateFolder() { return "/var/lib/gantry-tests/" + Oci(); }

std::string Read(const std::string& name) { return e2e::ReadText(StateFolder() + "/" + name); }

std::string BootId() { return e2e::ReadText("/proc/sys/kernel/random/boot_id"); }

std::string Running() { return Oci() + "running"; }

std::string LeftPod(const std::string& sandboxer) { return Oci() + sandboxer; }

std::string Ended() { return Oci() + "ended"; }

void NoteTheBoot() {
  std::filesystem::create_directories(StateFolder());
  e2e::WriteText(StateFolder() + "/boot", BootId());
}

void FindAnotherBoot() {
  const std::string before = Read("boot");
  ASSERT_NE(before, "") << "the tests of BeforeReboot did not run";
  ASSERT_NE(before, BootId()) << "there was no reboot";
}

class BeforeReboot : public NodeTest {
 protected:
  void SetUp() override {
    NodeTest::SetUp();
    NoteTheBoot();
  }
};

class PodBeforeReboot : public PodTest {
 protected:
  void SetUp() override {
    PodTest::SetUp();
    NoteTheBoot();
  }
};

INSTANTIATE_PODS(PodBeforeReboot);

TEST_F(BeforeReboot, ContainersRunAndHaveEnded) {
  ASSERT_NO_FATAL_FAILURE(Start(Running(), {"sleep", "100000"}));
  ASSERT_NO_FATAL_FAILURE(Start(Ended(), {"sh", "-c", "exit 3"}));
  EXPECT_TRUE(e2e::Eventually([] { return FindTask(Ended()).state == "STOPPED"; }));
  Keep();
}

TEST_P(PodBeforeReboot, Runs) {
  const e2e::PodConfig config = Pod(LeftPod(GetParam()));
  const std::string pod = RunPod(config);
  e2e::WriteText(StateFolder() + "/pod-" + GetParam(), pod);
  e2e::WriteText(StateFolder() + "/container-" + GetParam(),
                 RunContainer(pod, config, {"sleep", "100000"}));
  KeepPods();
}

// After a reboot containerd looks for work folders only in namespaces of which /run
// has tasks: whatever the runtime is, they stay until the id is used again.
std::string LeftoversAfterReboot(const std::string& id) {
  std::istringstream lines(Leftovers(id));
  std::string left;
  for (std::string line; std::getline(lines, line);) {
    left += line.starts_with("work folder ") ? "" : line + "\n";
  }
  return left;
}

class AfterReboot : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(FindAnotherBoot());
    NodeTest::SetUp();
  }
};

class PodAfterReboot : public PodTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(FindAnotherBoot());
    PodTest::SetUp();
  }
};

INSTANTIATE_PODS(PodAfterReboot);

TEST_F(AfterReboot, ContainersAreListedWithoutTaskAndGoAway) {
  for (const std::string& id : {Running(), Ended()}) {
    EXPECT_THAT(Containers(), Contains(id));
    EXPECT_EQ(FindTask(id).state, "");
    EXPECT_EQ(Remove(id), "");
    EXPECT_EQ(LeftoversAfterReboot(id), "");
    EXPECT_THAT(Containers(), Not(Contains(id)));
  }
}

TEST_F(AfterReboot, AContainerMayHaveTheIdAgain) {
  ASSERT_THAT(Containers(), Not(Contains(Running())));
  ASSERT_NO_FATAL_FAILURE(Start(Running(), {"sleep", "1000"}));
  EXPECT_EQ(Exec(Running(), {"sh", "-c", "exit 5"}).status, 5);
}

TEST_P(PodAfterReboot, IsListedAsEndedAndGoesAway) {
  const std::string pod = Read("pod-" + GetParam());
  const std::string container = Read("container-" + GetParam());
  const auto pod_status = cri().PodStatus(pod);
  ASSERT_TRUE(pod_status) << pod_status.error().message;
  EXPECT_EQ(pod_status->status().state(), e2e::cri::SANDBOX_NOTREADY);
  const auto status = cri().ContainerStatus(container);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->status().state(), e2e::cri::CONTAINER_EXITED);
  const Status stopped = cri().StopPod(pod);
  EXPECT_TRUE(stopped) << stopped.error().message;
  const Status removed = cri().RemovePod(pod);
  EXPECT_TRUE(removed) << removed.error().message;
  for (const std::string& id : {pod, container}) {
    EXPECT_TRUE(e2e::Eventually([&] { return LeftoversAfterReboot(id).empty(); }))
        << LeftoversAfterReboot(id);
  }
  const auto pods = cri().Pods();
  ASSERT_TRUE(pods);
  EXPECT_FALSE(std::ranges::any_of(*pods, [&](const auto& one) { return one.id() == pod; }));
}

TEST_P(PodAfterReboot, MayHaveTheNameAgain) {
  const e2e::PodConfig config = Pod(LeftPod(GetParam()));
  const std::string id = RunContainer(RunPod(config), config, {"sleep", "1000"});
  const auto said = cri().Exec(id, {"echo", "here"});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->out, "here\n");
}

}  // namespace
}  // namespace gantry::node
