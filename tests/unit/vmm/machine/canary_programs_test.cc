// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/canary_programs.h"

#include <fcntl.h>
#include <signal.h>

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/vmm/hypervisor/accelerator.h"
#include "tests/unit/vmm/machine/deadlines.h"

namespace gantry::vmm {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class CanaryProgramsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "whoever takes rights from processes is root";
    }
    programs_ = *CanaryPrograms::Make(context_);
  }

  std::string Script(const std::string& text) {
    const std::string path = Format("{}/{}", folder_.path(), ++scripts_);
    EXPECT_TRUE(WriteFile(path, "#!/bin/sh\n" + text, 0700));
    return path;
  }

  AskFunction Asks() {
    return [this](const ProgramQuestion& question) { return programs_->Ask(question); };
  }

  void ExpectNoneIsLeft() {
    for (const auto& process : context_.spawned) {
      EXPECT_TRUE(process->Wait(std::chrono::seconds(60)));
    }
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  FakeSandboxContext context_;
  std::unique_ptr<CanaryPrograms> programs_;
  int scripts_ = 0;
};

TEST_F(CanaryProgramsTest, TheCanarysProgramsAreTheKeepers) {
  const UniqueFd canary(open(Script("echo works: v\n").c_str(), O_RDONLY | O_CLOEXEC));
  const Acceleration found = ChooseAccelerator({.canary = Format("/proc/self/fd/{}", canary.get()),
                                                .qemu = Script("echo \"$@: Kernel panic\" >&2"),
                                                .kernel = "/k"},
                                               Asks());
  EXPECT_EQ(found.words, "KVM works (v), and a kernel boots in it");
  EXPECT_THAT(context_.Tags(), ElementsAre("kvm-canary", "kvm-canary"));
  EXPECT_EQ(context_.asked[0].program, Format("{}/1", folder_.path()))
      << "a path of this process's is another one in the keeper's";
  EXPECT_THAT(context_.asked[1].argv, Contains("/k"));
  ExpectNoneIsLeft();
}

TEST_F(CanaryProgramsTest, TheyHaveNoRights) {
  const auto said =
      programs_->Ask({.program = Script("grep -E '^(CapEff|NoNewPrivs)' /proc/self/status\n"),
                      .arguments = {},
                      .environment = {"PATH=/usr/bin:/bin"}});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_THAT(*said, HasSubstr("CapEff:\t0000000000000000\nNoNewPrivs:\t1\n"));
  ExpectNoneIsLeft();
}

TEST_F(CanaryProgramsTest, OneThatSaysNothingHasItsTime) {
  const auto said = programs_->Ask({.program = Script("echo begins; exec sleep 1000"),
                                    .arguments = {},
                                    .environment = {"PATH=/usr/bin:/bin"},
                                    .limit = std::chrono::milliseconds(300)});
  ASSERT_TRUE(said) << said.error().message;
  ExpectNoneIsLeft();
}

TEST_F(CanaryProgramsTest, OneThatSaysTooMuchIsCutOff) {
  const auto said = programs_->Ask(
      {.program = Script("while :; do echo 0123456789; done"), .arguments = {}, .max_bytes = 5000});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->size(), 5000U);
  ExpectNoneIsLeft();
}

TEST_F(CanaryProgramsTest, AnEngineThatEndsKillsItAndWaitsForNobody) {
  std::promise<void> spawned;
  context_.on_spawn = [&](const SpawnRequest&) -> Status {
    spawned.set_value();
    return {};
  };
  auto asks = std::async(std::launch::async, [&] {
    return programs_->Ask({.program = Script("exec sleep 1000"),
                           .arguments = {},
                           .environment = {"PATH=/usr/bin:/bin"},
                           .limit = std::chrono::hours(1)});
  });
  spawned.get_future().wait();
  programs_->Stop();
  EXPECT_EQ(asks.get().error().code, Code::kUnavailable);
  ExpectNoneIsLeft();
  EXPECT_EQ(programs_->Ask({.program = "/bin/true", .arguments = {}}).error().code,
            Code::kUnavailable);
  EXPECT_EQ(context_.asked.size(), 1U);
}

TEST_F(CanaryProgramsTest, SaysWhatCannotBeStarted) {
  const auto said = programs_->Ask({.program = "/no/such/program", .arguments = {}});
  ASSERT_FALSE(said);
  EXPECT_THAT(said.error().message, HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace gantry::vmm
