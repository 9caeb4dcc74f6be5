// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/gvisor_warm_test.h"

#include <algorithm>

namespace gantry::e2e {
namespace {

std::vector<pid_t> PidsOf(const std::vector<HostProcess>& processes) {
  std::vector<pid_t> pids;
  for (const HostProcess& process : processes) {
    pids.push_back(process.pid);
  }
  return pids;
}

bool IsSentry(const HostProcess& process) { return process.command.starts_with("runsc-sandbox "); }

}  // namespace

void GvisorWarmTest::SetUp() {
  if (!settings().gvisor()) {
    GTEST_SKIP() << "is about the gvisor backend";
  }
  if (!settings().sandbox_api()) {
    GTEST_SKIP() << settings().no_sandbox_api();
  }
  CriTest::SetUp();
}

void GvisorWarmTest::TearDown() {
  if (IsSkipped()) {
    return;
  }
  RemovePods();
  WriteText(settings().root + "/gantry.yaml", GantryConfiguration(settings()));
  if (node().Keeper().pid != 0) {
    EXPECT_EQ(Gantryctl({"restart"}).status, 0);
  }
  EXPECT_TRUE(Eventually([&] { return Waiting().empty(); })) << "sentries are left";
  CriTest::TearDown();
}

PodConfig GvisorWarmTest::NamedPod(const std::string& suffix) {
  PodConfig config = Pod(suffix);
  config.hostname = "web-0";
  return config;
}

void GvisorWarmTest::Restart(uint32_t warm, const std::string& flags) {
  WriteText(settings().root + "/gantry.yaml",
            GantryConfiguration(settings()) + flags + "      warm: " + std::to_string(warm) + "\n");
  const Output restarted = Gantryctl({"restart"});
  ASSERT_EQ(restarted.status, 0) << restarted.Text();
  AwaitReady(warm);
}

void GvisorWarmTest::AwaitReady(uint32_t warm) {
  EXPECT_TRUE(Eventually([&] { return Count("warm_ready").value_or(0) == warm; }))
      << Gantryctl({"status"}).Text();
}

Output GvisorWarmTest::Gantryctl(const Words& words) {
  Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
  all.insert(all.end(), words.begin(), words.end());
  return RunProgram(all);
}

std::optional<uint64_t> GvisorWarmTest::Count(const std::string& name) {
  const std::string text = Gantryctl({"status"}).out;
  const size_t at = text.find(name + " ");
  return at == std::string::npos ? std::nullopt
                                 : std::optional(std::stoull(text.substr(at + name.size() + 1)));
}

std::vector<pid_t> GvisorWarmTest::OfPods() {
  std::vector<HostProcess> found = ProcessesInCgroup("/" + settings().ns + "/");
  std::erase_if(found, [](const HostProcess& process) { return !IsSentry(process); });
  return PidsOf(found);
}

pid_t GvisorWarmTest::OfPod() {
  const std::vector<pid_t> all = OfPods();
  EXPECT_EQ(all.size(), 1U);
  return all.empty() ? 0 : all.front();
}

std::vector<pid_t> GvisorWarmTest::Waiting() {
  // One that was taken has the same arguments as before.
  const std::vector<pid_t> taken = OfPods();
  return PidsOf(Processes([&](const HostProcess& process) {
    return IsSentry(process) &&
           process.command.find("--bundle=" + folder() + "/warm/") != std::string::npos &&
           !std::ranges::contains(taken, process.pid);
  }));
}

}  // namespace gantry::e2e
