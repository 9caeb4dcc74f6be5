// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/guest/process_end.h>

#include "core/os/fs.h"

namespace gantry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KnownProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    path_ = dir_.path() + "/init.exit";
  }

  os::TempDir dir_;
  std::string path_;
};

TEST_F(KnownProcessTest, IsReadAsItWasWritten) {
  ASSERT_TRUE(
      (KnownProcess{.pid = 7, .exit = ExitStatus{137, 5}, .out_of_memory = true}).Write(path_));
  const auto known = KnownProcess::Read(path_);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->pid, 7);
  ASSERT_TRUE(known->exit);
  EXPECT_EQ(known->exit->status, 137U);
  EXPECT_EQ(known->exit->exited_at_ns, 5);
  EXPECT_TRUE(known->out_of_memory);
}

TEST_F(KnownProcessTest, IsReadWhileItRuns) {
  ASSERT_TRUE(KnownProcess{.pid = 7}.Write(path_));
  const auto known = KnownProcess::Read(path_);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->pid, 7);
  EXPECT_FALSE(known->exit);
}

TEST_F(KnownProcessTest, IsReadFromAFileOfBefore) {
  ASSERT_TRUE(WriteFile(path_, "0 137 5", 0600));
  const auto known = KnownProcess::Read(path_);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->exit->status, 137U);
  EXPECT_FALSE(known->out_of_memory);
}

TEST_F(KnownProcessTest, IsNotInADamagedFile) {
  EXPECT_EQ(KnownProcess::Read(path_).error().code, Code::kNotFound);
  for (const char* text : {"", "x", "1 2", "1 2 3 4 5", "1 2 x"}) {
    ASSERT_TRUE(WriteFile(path_, text, 0600));
    const auto known = KnownProcess::Read(path_);
    ASSERT_FALSE(known) << text;
    EXPECT_EQ(known.error().code, Code::kInternal) << text;
  }
}

TEST(EndReport, OfAnInitThatMemoryHasEndedSaysSoFirst) {
  FakeContainerContext container("c1");
  EndReport report(container);
  EXPECT_FALSE(report.TellKnown({.pid = 0}));
  EXPECT_FALSE(report.told());
  report.Tell({137, 1}, true);
  report.Tell({3, 2});
  EXPECT_THAT(container.events.words(), ElementsAre("out of memory", "exited 137")) << "once";
  EXPECT_TRUE(report.out_of_memory());
}

TEST(EndReport, OfAnExecIsNoWordAboutItsContainer) {
  FakeContainerContext container("c1");
  EndReport report(container.init());
  report.Tell({137, 1}, true);
  EXPECT_THAT(container.events.words(), ElementsAre("exited 137"));
}

TEST(EndReport, IsToldNobodyWhoHasGone) {
  FakeContainerContext container("c1");
  EndReport report(container);
  report.Retire();
  report.Tell({3, 1});
  EXPECT_TRUE(report.told());
  EXPECT_THAT(container.events.words(), IsEmpty());
}

TEST(ExecTable, FindsWhoIsThere) {
  const auto exec = ExecId::Parse("e1");
  ASSERT_TRUE(exec);
  ExecTable table;
  table.Put(7, *exec);
  EXPECT_EQ(table.Find(7), *exec);
  EXPECT_EQ(table.Find(8), ExecId());
  table.Remove(*exec);
  table.Remove(*exec);
  EXPECT_EQ(table.Find(7), ExecId());
}

TEST(EndsByDefault, IsByAllThatDoNotIgnoreOrStop) {
  EXPECT_TRUE(EndsByDefault(SIGKILL));
  EXPECT_TRUE(EndsByDefault(SIGTERM));
  EXPECT_FALSE(EndsByDefault(0));
  EXPECT_FALSE(EndsByDefault(SIGCHLD));
  EXPECT_FALSE(EndsByDefault(SIGTSTP));
}

}  // namespace
}  // namespace gantry
