// SPDX-License-Identifier: Apache-2.0
//
// Machines of a template, through containerd: which pods get one, what is their own, and that
// neither an engine nor a template that is broken costs anybody his machine.
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "tests/harness/node.h"
#include "tests/harness/vmm_test.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kAsk =
    "cat /proc/sys/kernel/hostname /proc/sys/kernel/random/boot_id; date +%s";

class VmmTemplate : public VmmTest {
 protected:
  void SetUp() override {
    VmmTest::SetUp();
    if (!IsSkipped()) {
      ASSERT_NO_FATAL_FAILURE(Restart(1));
    }
  }

  void TearDown() override {
    if (!IsSkipped()) {
      Configure(0);
      EXPECT_EQ(Gantryctl({"restart"}).status, 0);
      // What there was of templates goes with the handler that wanted them.
      EXPECT_EQ(RunContainer({"--rm"}, Id("-last"), {"true"}).status, 0);
      EXPECT_TRUE(Eventually([] { return Templates() == 0; }));
    }
    VmmTest::TearDown();
  }

  static void Configure(uint32_t count) {
    std::string text = GantryConfiguration(settings());
    const std::string plain = "  vmm: {backend: vmm}\n";
    const size_t at = text.find(plain);
    ASSERT_NE(at, std::string::npos) << text;
    if (count > 0) {
      text.replace(at, plain.size(),
                   "  vmm: {backend: vmm, options: {template: " + std::to_string(count) + "}}\n");
    }
    WriteText(settings().root + "/gantry.yaml", text);
  }

  void Restart(uint32_t count) {
    ASSERT_NO_FATAL_FAILURE(Configure(count));
    const Output restarted = Gantryctl({"restart"});
    ASSERT_EQ(restarted.status, 0) << restarted.Text();
    AwaitReady();
  }

  void AwaitReady() {
    EXPECT_TRUE(Eventually([&] { return Count("warm_ready") == 1; }, kLong))
        << Gantryctl({"status"}).Text();
  }

  Output Gantryctl(const Words& words) {
    Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  /// Of `gantryctl status`; none: it says nothing of the kind.
  std::optional<uint64_t> Count(const std::string& name) {
    const std::string text = Gantryctl({"status"}).out;
    const size_t at = text.find(name + " ");
    return at == std::string::npos ? std::nullopt
                                   : std::optional(std::stoull(text.substr(at + name.size() + 1)));
  }

  static std::string TemplatesFolder() { return VmmFolder(settings()) + "/templates"; }

  static size_t Templates() {
    std::error_code none;
    const std::filesystem::directory_iterator all(TemplatesFolder(), none);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
};

TEST_F(VmmTemplate, APodTakesTheMachineThatWaits) {
  const auto waiting = Helpers(kQemu);
  ASSERT_EQ(waiting.size(), 1U) << Describe(waiting);
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const auto taken = Count("warm_taken");
  EXPECT_EQ(taken, 1U);
  EXPECT_EQ(FindTask(id).pid, waiting.front().pid);
  const std::string proc = "/proc/" + std::to_string(waiting.front().pid);
  EXPECT_THAT(ReadText(proc + "/cgroup"), HasSubstr(id));
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 6"}).status, 6);
  EXPECT_THAT(Ctr({"tasks", "metrics", id}).out, HasSubstr("memory"));
  Remove(id);
}

TEST_F(VmmTemplate, MachinesOfOneAreStrangers) {
  const Output first = RunScript(kAsk);
  const Output second = RunScript(kAsk);
  ASSERT_EQ(first.status, 0) << first.Text();
  ASSERT_EQ(second.status, 0) << second.Text();
  const auto line = [](const std::string& text, int number) {
    size_t at = 0;
    for (; number > 0; --number) {
      at = text.find('\n', at) + 1;
    }
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(line(first.out, 1), line(second.out, 1)) << "the boot's id";
  EXPECT_EQ(line(first.out, 1).size(), 36U);
  EXPECT_GE(std::stoll(line(second.out, 2)), std::stoll(line(first.out, 2)));
  EXPECT_LE(std::stoll(line(second.out, 2)), time(nullptr));
}

TEST_F(VmmTemplate, OneThatWasTakenOutlivesItsEngine) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  const pid_t machine = FindTask(id).pid;
  ASSERT_NO_FATAL_FAILURE(KillEngine());
  EXPECT_TRUE(Eventually([&] { return FindTask(id).state == "RUNNING"; }));
  EXPECT_EQ(FindTask(id).pid, machine);
  EXPECT_EQ(Exec(id, {"sh", "-c", "exit 6"}).status, 6);
  // The one that waited for the engine before is gone, and there is one more.
  AwaitReady();
  EXPECT_TRUE(Eventually([] { return Helpers(kQemu).size() == 2; }));
  Remove(id);
}

TEST_F(VmmTemplate, ABrokenOneCostsNobodyHisMachine) {
  const std::string id = Id();
  StartDetached(id, {"sleep", "100000"});
  for (const auto& entry : std::filesystem::directory_iterator(TemplatesFolder())) {
    WriteText(entry.path().string() + "/state", "broken");
  }
  const auto waiting = Helpers(kQemu);
  for (const HostProcess& one : waiting) {
    if (one.pid != FindTask(id).pid) {
      kill(one.pid, SIGKILL);
    }
  }
  EXPECT_EQ(RunScript("exit 5").status, 5);
  AwaitReady();
  Remove(id);
}

}  // namespace
}  // namespace gantry::e2e
