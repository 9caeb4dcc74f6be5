// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/harness/ctr_fault_test.h"

#include <utility>

#include <gmock/gmock.h>

namespace gantry::fault {

using e2e::Output;
using e2e::Words;

Status CtrFaultTest::ToStatus(const Output& output, int expected) {
  return output.status == expected ? Status() : Fail(Code::kUnknown, "{}", output.Text());
}

std::function<void()> CtrFaultTest::IsIn(const std::string& id, const std::string& state) {
  return [=] { EXPECT_EQ(FindTask(id).state, state); };
}

void CtrFaultTest::Forget(const std::string& id) {
  Ctr({"tasks", "rm", "-f", id});
  Ctr({"containers", "rm", id});
}

Step CtrFaultTest::CreateAndStart(const std::string& id, const Words& command, const Words& flags) {
  Words all = {"-d"};
  all.insert(all.end(), flags.begin(), flags.end());
  return {.operation = "Create and Start",
          .run = [=] { return ToStatus(RunContainer(all, id, command)); },
          .check = IsIn(id, "RUNNING"),
          .undo = [=] { Forget(id); }};
}

Step CtrFaultTest::ExecToDelete(const std::string& id, const Words& command,
                                const Output& expected) {
  return {.operation = "Exec to Delete",
          .run = [=]() -> Status {
            const Output done = E2eTest::Exec(id, command);
            GANTRY_CHECK_OK(ToStatus(done, expected.status));
            EXPECT_EQ(done.out, expected.out);
            EXPECT_EQ(done.err, expected.err);
            return {};
          },
          .check = IsIn(id, "RUNNING"),
          .optional = true};
}

Step CtrFaultTest::KillAndTheEnd(const std::string& id, const std::string& signal) {
  return {.operation = "Kill and the end",
          .run = [=]() -> Status {
            GANTRY_CHECK_OK(ToStatus(Ctr({"tasks", "kill", "-s", signal, id})));
            EXPECT_TRUE(WaitForState(id, "STOPPED"));
            return {};
          },
          .check = IsIn(id, "STOPPED")};
}

Step CtrFaultTest::DeleteAfter(const std::string& id, int code) {
  return {
      .operation = "Delete",
      .run = [=]() -> Status {
        const Output done = Ctr({"tasks", "rm", id});
        GANTRY_CHECK_OK(ToStatus(done));
        EXPECT_NE(done.err.find("non-zero exit code " + std::to_string(code)), std::string::npos)
            << done.Text();
        return {};
      },
      .check = [=] { EXPECT_EQ(FindTask(id).pid, 0); }};
}

Life CtrFaultTest::LifeOf(const std::string& id, std::vector<Step> steps) {
  return {.steps = std::move(steps),
          .end = [=, this](bool undisturbed) { End(id, undisturbed); },
          .give_up = [=] { Forget(id); }};
}

void CtrFaultTest::End(const std::string& id, bool undisturbed) {
  EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
  auto topics = e2e::Events::TopicsOnce(events().Until("/tasks/delete", id));
  if (undisturbed) {
    // What is optional may be left out.
    std::erase_if(topics, [](const std::string& topic) {
      return topic.starts_with("exec-") || topic.starts_with("exit(") || topic == "paused" ||
             topic == "resumed";
    });
    EXPECT_THAT(topics, ::testing::ElementsAre("create", "start", "exit", "delete"));
  }
}

}  // namespace gantry::fault
