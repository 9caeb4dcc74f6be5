// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/vmm_test.h"

#include <signal.h>

#include <gtest/gtest.h>

namespace gantry::e2e {
namespace {

constexpr const char* kOther = "is about the vmm backend";

}  // namespace

std::vector<HostProcess> HelpersCalled(const Node& node, std::string_view program) {
  const pid_t keeper = node.Keeper().pid;
  return Processes([&](const HostProcess& process) {
    return process.parent == keeper && process.name.find(program) != std::string::npos;
  });
}

void ExpectNoMachine(const Node& node) {
  for (const std::string& program :
       {node.settings().vmm_program(), std::string(kVsock), std::string(kVirtiofsd)}) {
    EXPECT_TRUE(Eventually([&] { return HelpersCalled(node, program).empty(); }))
        << Describe(HelpersCalled(node, program));
  }
}

void KillEngineOf(const Node& node) {
  const pid_t engine = node.Engine().pid;
  ASSERT_GT(engine, 0);
  ASSERT_EQ(kill(engine, SIGKILL), 0);
  ASSERT_TRUE(WaitGone(engine));
}

void VmmTest::SetUp() {
  if (!settings().vmm()) {
    GTEST_SKIP() << kOther;
  }
  E2eTest::SetUp();
}

void VmmTest::TearDown() {
  E2eTest::TearDown();
  if (!IsSkipped()) {
    ExpectNoMachine(node());
  }
}

Output VmmTest::RunScript(const std::string& script, const Words& flags) {
  static int counter = 0;
  Words all{"--rm"};
  all.insert(all.end(), flags.begin(), flags.end());
  return RunContainer(all, Id("-s" + std::to_string(++counter)), {"sh", "-c", script}, {}, kLong);
}

Program VmmTest::StartScript(const std::string& id, const std::string& script, const Words& flags) {
  Words all{"--rm"};
  all.insert(all.end(), flags.begin(), flags.end());
  Program program = StartCtr(node(), RunWords(all, id, {"sh", "-c", "echo up; " + script}), {});
  EXPECT_TRUE(program.ReadUntil("up\n", kLong)) << program.err();
  return program;
}

Program VmmTest::StartExec(const std::string& id, const std::string& script) {
  Program program = StartCtr(node(), ExecWords({}, id, {"sh", "-c", "echo up; " + script}), {});
  EXPECT_TRUE(program.ReadUntil("up\n")) << program.err();
  return program;
}

void VmmTest::KillHelper(std::string_view program) {
  const auto found = Helpers(program);
  ASSERT_EQ(found.size(), 1U) << program << Describe(found);
  ASSERT_EQ(kill(found.front().pid, SIGKILL), 0);
}

Words VmmTest::Bound(const std::string& from, const std::string& to, const std::string& options) {
  return {"--mount", "type=bind,src=" + from + ",dst=" + to + ",options=" + options};
}

void VmmPodTest::SetUp() {
  if (!settings().vmm()) {
    GTEST_SKIP() << kOther;
  }
  CriPodTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  config_ = Pod();
  config_.hostname = "web-0";
  pod_ = RunPod(config_);
}

void VmmPodTest::TearDown() {
  CriPodTest::TearDown();
  if (!IsSkipped()) {
    ExpectNoMachine(node());
  }
}

std::string VmmPodTest::Run(const std::string& name, const std::string& script) {
  return RunContainerIn(pod_, config_, Container(name, script));
}

ContainerConfig VmmPodTest::Container(const std::string& name, const std::string& script) {
  ContainerConfig container;
  container.name = name;
  container.command = {"sh", "-c", script};
  return container;
}

void VmmPodTest::Mount(ContainerConfig& container, const std::string& from, const std::string& to,
                       bool read_only) {
  cri::Mount& mount = container.mounts.emplace_back();
  mount.set_host_path(from);
  mount.set_container_path(to);
  mount.set_readonly(read_only);
}

std::string VmmPodTest::LogOf(const std::string& name) const {
  return config_.log_directory + "/" + name + ".log";
}

std::string VmmPodTest::Says(const std::string& id, const std::string& script) {
  const ExecResult result = Exec(id, {"sh", "-c", script});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

}  // namespace gantry::e2e
