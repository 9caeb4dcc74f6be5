// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/exec.h"

#include <csignal>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vmm/container/pod_fixture.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class VmmExecs : public PodTest {
 protected:
  void SetUp() override {
    PodTest::SetUp();
    if (!pod_) {
      return;
    }
    const ContainerRequest request = RequestOf({.script = "echo up; sleep 10000"});
    id_ = request.id.str();
    context_ = std::make_unique<TestContext>(id_);
    container_ = Run(request, *context_);
    EXPECT_EQ(ReadUntil(context_->fake.process.attached.at(Stream::kStdout), "up"), "up\n");
  }

  void TearDown() override {
    if (container_) {
      EXPECT_TRUE(container_->Delete());
      container_.reset();
    }
    PodTest::TearDown();
  }

  std::unique_ptr<Process> Exec(TestExecContext& context, const ExecRequest& request) {
    auto exec = container_->Exec(request, context);
    EXPECT_TRUE(exec);
    return std::move(*exec);
  }

  std::string id_;
  std::unique_ptr<TestContext> context_;
  std::unique_ptr<VmmContainer> container_;
};

TEST_F(VmmExecs, RunInTheContainerAndTellHowTheyEnd) {
  TestExecContext context(id_, "one");
  auto exec = Exec(context, ExecOf("one", {.script = "read line; echo got $line; exit 9"}));
  EXPECT_EQ(exec->Kill(SIGTERM).error().code, Code::kFailedPrecondition) << "it does not run yet";
  ASSERT_TRUE(exec->Start());
  EXPECT_TRUE(exec->Start()) << "again";
  EXPECT_EQ(context.pid, vm_.vmm->pid());
  WriteStream(context.attached.at(Stream::kStdin), "word\n");
  EXPECT_EQ(vmm::ReadStream(context.attached.at(Stream::kStdout)), "got word\n");
  EXPECT_EQ(context.WaitForExit(), 9U);
  EXPECT_EQ(exec->Kill(SIGTERM).error().code, Code::kNotFound);
  ASSERT_TRUE(exec->Delete());
  ASSERT_TRUE(exec->Delete()) << "again";
  EXPECT_THAT(Listed().at(0).processes, SizeIs(1));
}

TEST_F(VmmExecs, WhoseProgramIsMissingLeaveNothingAndTheirIdIsFree) {
  ExecRequest request = ExecOf("one", {.script = "exit 4"});
  ExecRequest missing = request;
  missing.process_json.replace(missing.process_json.find("\"sh\""), 4, "\"nosuch\"");
  TestExecContext context(id_, "one");
  auto exec = Exec(context, missing);
  const Status started = exec->Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("nosuch"));
  EXPECT_THAT(Listed().at(0).processes, SizeIs(1));
  ASSERT_TRUE(exec->Delete());
  exec.reset();
  TestExecContext its(id_, "one");
  auto other = Exec(its, request);
  ASSERT_TRUE(other->Start());
  EXPECT_EQ(its.WaitForExit(), 4U);
  EXPECT_TRUE(other->Delete());
}

TEST_F(VmmExecs, AreMadeAnewWhereACallThatWasGivenUpHasCutOneShort) {
  ASSERT_TRUE(vm_.host->client().Call(
      protocol::CreateExec{.container = id_,
                           .exec = "one",
                           .process_json = container::Bundle::ProcessOf({.script = "exit 1"}),
                           .streams = {}},
      Soon()));
  TestExecContext context(id_, "one");
  auto exec = Exec(context, ExecOf("one", {.script = "exit 6"}));
  ASSERT_TRUE(exec->Start());
  EXPECT_EQ(context.WaitForExit(), 6U);
  EXPECT_TRUE(exec->Delete());
}

TEST_F(VmmExecs, ThatRunAreKilled) {
  TestExecContext context(id_, "one");
  auto exec = Exec(context, ExecOf("one", {.script = "sleep 1000"}));
  ASSERT_TRUE(exec->Start());
  ASSERT_TRUE(exec->Kill(SIGKILL));
  EXPECT_EQ(context.WaitForExit(), 137U);
  TestExecContext its(id_, "two");
  auto other = Exec(its, ExecOf("two", {.script = "sleep 1000"}));
  ASSERT_TRUE(other->Start());
  ASSERT_TRUE(other->Delete());
  EXPECT_EQ(its.WaitForExit(), 137U) << "by its delete";
  EXPECT_TRUE(exec->Delete());
}

TEST_F(VmmExecs, EndWithTheirContainer) {
  TestExecContext context(id_, "one");
  auto exec = Exec(context, ExecOf("one", {.script = "sleep 1000"}));
  ASSERT_TRUE(exec->Start());
  ASSERT_TRUE(container_->Kill(SIGKILL));
  EXPECT_EQ(context.WaitForExit(), 137U);
  EXPECT_EQ(context_->WaitForExit(), 137U);
  TestExecContext its(id_, "two");
  auto late = Exec(its, ExecOf("two", {.script = "exit"}));
  EXPECT_EQ(late->Start().error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace gantry::vmm
