// SPDX-License-Identifier: Apache-2.0
//
// An exec's life with an OCI runtime that is a shell script.
#include "plugins/runc/exec.h"

#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/os/few_descriptors.h"
#include "tests/unit/runc/container_fixture.h"

namespace gantry::runc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RuncExecTest : public RuncContainerTest {
 protected:
  RuncExecTest() {
    exec_request_.id = ExecId::Parse("init").value_or(ExecId());
    exec_request_.process_json = R"({"args": ["x"]})";
    Script("cp $(dirname $PIDFILE)/exec-init.json " + dir_ / "seen" + " 2>/dev/null; made");
    made_ = *Create();
  }

  FakeProcessContext exec_{"c1", "init"};
  ExecRequest exec_request_;
  std::unique_ptr<Container> made_;
};

TEST_F(RuncExecTest, StartsAndBinds) {
  auto exec = made_->Exec(exec_request_, exec_);
  ASSERT_TRUE(exec);
  EXPECT_THAT(VerbsOf(context_), ElementsAre("create"));
  ASSERT_TRUE((*exec)->Start());
  ASSERT_NE(exec_.bound, nullptr);
  EXPECT_NE(exec_.bound, container_.process.bound);
  EXPECT_EQ(Slurp(dir_ / "seen"), R"({"args": ["x"]})");
  EXPECT_EQ(Slurp(dir_ / "bundle/exec-init.pid"),
            Format("{} {}", exec_.bound->pid().value, exec_.bound->start_time()));
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.json"));
  EXPECT_TRUE(IsThere(dir_ / "bundle/init.pid"));
  EXPECT_TRUE((*exec)->Delete());
  EXPECT_TRUE((*exec)->Delete());
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.pid"));
}

TEST_F(RuncExecTest, IsDeletedWhereNothingCanBeOpened) {
  auto exec = made_->Exec(exec_request_, exec_);
  ASSERT_TRUE(exec);
  ASSERT_TRUE((*exec)->Start());
  {
    const test::FewDescriptors few(0);
    EXPECT_TRUE((*exec)->Delete());
  }
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.pid"));
}

TEST_F(RuncExecTest, HasNoMoreTimeThanTheCall) {
  Script("sleep 1000");
  context_.time_left = std::chrono::milliseconds(100);
  auto exec = made_->Exec(exec_request_, exec_);
  ASSERT_TRUE(exec);
  const Status started = (*exec)->Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(started.error().message, HasSubstr("not done after 100 ms, killed"));
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.json"));
}

TEST_F(RuncExecTest, LeavesNoFilesWhenItFails) {
  Script(R"(echo '{"level":"error","msg":"executable file `x` not found"}' > $LOG; exit 1)");
  auto exec = made_->Exec(exec_request_, exec_);
  ASSERT_TRUE(exec);
  EXPECT_EQ((*exec)->Start().error().code, Code::kInvalidArgument);
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.json"));
  EXPECT_FALSE(IsThere(dir_ / "bundle/exec-init.log"));
}

TEST_F(RuncExecTest, RecoversWhatHasStarted) {
  ASSERT_TRUE((*made_->Exec(exec_request_, exec_))->Start());
  const auto process = std::exchange(exec_.bound, nullptr);
  ASSERT_TRUE(made_->RecoverExec(exec_request_, exec_, true));
  EXPECT_EQ(exec_.bound, process);
}

TEST_F(RuncExecTest, RecoversAStartThatWasUnderWay) {
  ASSERT_TRUE((*made_->Exec(exec_request_, exec_))->Start());
  const auto process = std::exchange(exec_.bound, nullptr);
  Write(dir_ / "bundle/exec-init.pid", std::to_string(process->pid().value));
  ASSERT_TRUE(made_->RecoverExec(exec_request_, exec_, true));
  EXPECT_EQ(exec_.bound, process);
}

TEST_F(RuncExecTest, AbortsAStartThatNeverTookEffect) {
  EXPECT_EQ(made_->RecoverExec(exec_request_, exec_, true).error().code, Code::kAborted);
  context_.LeaveBehind("exec/c1/init", RunShell("exit 1"));
  EXPECT_EQ(made_->RecoverExec(exec_request_, exec_, true).error().code, Code::kAborted);
  ASSERT_TRUE(made_->RecoverExec(exec_request_, exec_, false));
  EXPECT_EQ(exec_.bound, nullptr);
}

TEST_F(RuncExecTest, LeavesAloneWhatCannotBeRead) {
  ASSERT_TRUE((*made_->Exec(exec_request_, exec_))->Start());
  const auto process = std::exchange(exec_.bound, nullptr);
  {
    const int next = UniqueFd(dup(0)).get();
    const test::FewDescriptors few(static_cast<rlim_t>(next));
    EXPECT_EQ(made_->RecoverExec(exec_request_, exec_, true).error().code,
              Code::kResourceExhausted);
  }
  EXPECT_FALSE(process->Ended());
  ASSERT_TRUE(made_->RecoverExec(exec_request_, exec_, true));
  EXPECT_EQ(exec_.bound, process);
}

TEST_F(RuncExecTest, AbortsWhenTheTerminalWasOnTheWay) {
  ASSERT_TRUE((*made_->Exec(exec_request_, exec_))->Start());
  const auto process = exec_.bound;
  Write(dir_ / "bundle/exec-init.pid", std::to_string(process->pid().value));
  exec_request_.terminal = true;
  EXPECT_EQ(made_->RecoverExec(exec_request_, exec_, true).error().code, Code::kAborted);
  EXPECT_TRUE(process->Wait(std::chrono::seconds(10)));
}

TEST_F(RuncExecTest, ReportsAnEndThatNobodyKnows) {
  Write(dir_ / "bundle/exec-init.pid", "4194999 12");
  ASSERT_TRUE(made_->RecoverExec(exec_request_, exec_, true));
  ASSERT_TRUE(exec_.exited);
  EXPECT_EQ(exec_.exited->status, 255U);
}

}  // namespace
}  // namespace gantry::runc
