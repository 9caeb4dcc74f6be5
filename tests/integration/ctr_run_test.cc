// SPDX-License-Identifier: Apache-2.0
//
// `ctr run`: a container's life from the first mount to the last.

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

class CtrRun : public E2eTest {};

TEST_F(CtrRun, ShowsOutputAndExitCodeZero) {
  const Output output = RunContainer({"--rm"}, Id(), {"echo", "hello from inside"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "hello from inside\n");
  EXPECT_EQ(output.err, "");
}

TEST_F(CtrRun, KeepsStdoutAndStderrApart) {
  const Output output = RunContainer({"--rm"}, Id(), {"sh", "-c", "echo to-out; echo to-err >&2"});
  EXPECT_EQ(output.out, "to-out\n") << output.Text();
  EXPECT_EQ(output.err, "to-err\n");
}

TEST_F(CtrRun, PassesTheExitCodeOn) {
  const Output output = RunContainer({"--rm"}, Id(), {"sh", "-c", "exit 7"});
  EXPECT_EQ(output.status, 7) << output.Text();
}

TEST_F(CtrRun, PassesTheHighestExitCodeOn) {
  const Output output = RunContainer({"--rm"}, Id(), {"sh", "-c", "exit 255"});
  EXPECT_EQ(output.status, 255) << output.Text();
}

TEST_F(CtrRun, NamesTheMissingBinary) {
  const std::string id = Id();
  const Output output = RunContainer({"--rm"}, id, {"/no/such/program"});
  EXPECT_EQ(output.status, 1) << output.Text();
  EXPECT_NE(output.err.find("/no/such/program"), std::string::npos) << output.Text();
  Ctr({"containers", "rm", id});  // With a failed Create ctr leaves the container.
}

TEST_F(CtrRun, GivesTheProgramItsEnvironment) {
  const Output output =
      RunContainer({"--rm", "--env", "COLOUR=deep blue"}, Id(), {"sh", "-c", "echo $COLOUR"});
  EXPECT_EQ(output.out, "deep blue\n") << output.Text();
}

TEST_F(CtrRun, GivesTheProgramItsWorkingDirectory) {
  const Output output = RunContainer({"--rm", "--cwd", "/var/log"}, Id(), {"pwd"});
  EXPECT_EQ(output.out, "/var/log\n") << output.Text();
}

TEST_F(CtrRun, MountsWhatTheClientAsksFor) {
  const std::string folder = settings().root + "/shared";
  RunProgram({"mkdir", "-p", folder});
  WriteText(folder + "/note", "from the host\n");
  const Output output =
      RunContainer({"--rm", "--mount", "type=bind,src=" + folder + ",dst=/mnt,options=rbind:ro"},
                   Id(), {"sh", "-c", "cat /mnt/note; touch /mnt/new 2>/dev/null || echo refused"});
  EXPECT_EQ(output.out, "from the host\nrefused\n") << output.Text();
}

TEST_F(CtrRun, KeepsARootfsReadOnly) {
  const Output output = RunContainer({"--rm", "--read-only"}, Id(),
                                     {"sh", "-c", "touch /x 2>/dev/null || echo refused"});
  EXPECT_EQ(output.out, "refused\n") << output.Text();
}

TEST_F(CtrRun, RunsFromAPlainFolder) {
  const std::string id = Id();
  const std::string rootfs = settings().root + "/plain";
  RunProgram({"sh", "-c",
              "mkdir -p " + rootfs + "/bin && cp $(command -v busybox) " + rootfs +
                  "/bin/sh && mkdir -p " + rootfs + "/proc " + rootfs + "/dev " + rootfs + "/sys " +
                  rootfs + "/run"});
  Words words{"run", "--rm", "--runtime", settings().runtime, "--fifo-dir", node().fifo_dir()};
  if (settings().stock()) {
    words.insert(words.end(), {"--runc-binary", settings().oci});
  }
  words.insert(words.end(), {"--rootfs", rootfs, id, "/bin/sh", "-c", "echo plain; exit 3"});
  const Output output = Ctr(words);
  EXPECT_EQ(output.status, 3) << output.Text();
  EXPECT_EQ(output.out, "plain\n");
}

// As on a node that may write nothing to the PATH of its containerd.
TEST_F(CtrRun, RunsByThePathOfTheShim) {
  if (settings().runtime != "io.containerd.gantry.v1") {
    GTEST_SKIP() << "the shim's path names the default handler, and this one is another";
  }
  const std::string id = Id();
  const Output started =
      Ctr({"run", "-d", "--runtime", settings().gantry_bin + "/containerd-shim-gantry-v1",
           "--fifo-dir", node().fifo_dir(), kImage, id, "sleep", "1000"});
  ASSERT_EQ(started.status, 0) << started.Text();
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 7"}).status, 7);
  ASSERT_EQ(node().RestartContainerd(), "");
  EXPECT_EQ(FindTask(id).state, "RUNNING") << "a restarted containerd finds it by the path, too";
  Remove(id);
}

TEST_F(CtrRun, RunsDetachedAndIsRemovedLater) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Task task = FindTask(id);
  EXPECT_GT(task.pid, 0);
  EXPECT_EQ(task.state, "RUNNING");
  // runc's init has been released, and may still be executing it.
  EXPECT_TRUE(Eventually([&] {
    return ReadText("/proc/" + std::to_string(task.pid) + "/cmdline") ==
           std::string("sleep\0001000\0", 11);
  }));
  Remove(id);
}

TEST_F(CtrRun, IsRefusedWithAnIdInUse) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "1000"});
  const Output second = RunContainer({"-d"}, id, {"true"});
  EXPECT_NE(second.status, 0);
  EXPECT_NE(second.err.find("already exists"), std::string::npos) << second.Text();
  EXPECT_EQ(FindTask(id).state, "RUNNING");
  Remove(id);
}

TEST_F(CtrRun, UsesTheIdAgainAfterItsRemoval) {
  const std::string id = Id();
  for (int round = 0; round < 5; ++round) {
    const Output output = RunContainer({"--rm"}, id, {"echo", std::to_string(round)});
    ASSERT_EQ(output.status, 0) << output.Text();
    EXPECT_EQ(output.out, std::to_string(round) + "\n");
  }
}

TEST_F(CtrRun, KeepsTheExitCodeUntilItIsRead) {
  const std::string id = Id();
  StartDetached(id, {"sh", "-c", "exit 42"});
  ASSERT_TRUE(WaitForState(id, "STOPPED"));
  const Output removed = Ctr({"tasks", "rm", id});
  EXPECT_NE(removed.err.find("exit code 42"), std::string::npos) << removed.Text();
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
}

TEST_F(CtrRun, RunsManyAtOnce) {
  // Without KVM twenty machines would not boot within any limit.
  const int count = settings().vmm() ? 3 : 20;
  std::vector<Program> running;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    running.push_back(StartCtr(
        node(),
        RunWords({"--rm"}, Id("-" + number), {"sh", "-c", "echo " + number + "; exit " + number}),
        {}));
  }
  for (int i = 0; i < count; ++i) {
    const Output output = running[static_cast<size_t>(i)].Finish();
    EXPECT_EQ(output.status, i) << output.Text();
    EXPECT_EQ(output.out, std::to_string(i) + "\n");
  }
}

TEST_F(CtrRun, KillsWhatTheInitLeavesBehind) {
  const Output output =
      RunContainer({"--rm"}, Id(), {"sh", "-c", "sleep 1000 & sleep 1000 & echo gone"});
  EXPECT_EQ(output.status, 0) << output.Text();
  EXPECT_EQ(output.out, "gone\n");
}

}  // namespace
}  // namespace gantry::e2e
