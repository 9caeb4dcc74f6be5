// SPDX-License-Identifier: Apache-2.0
//
// Containers of ctr: each operation, with each step that goes wrong.
#include <gmock/gmock.h>

#include "tests/fault/harness/fault_test.h"

namespace gantry::fault {
namespace {

using e2e::Output;
using e2e::Program;
using e2e::Words;
using ::testing::ElementsAreArray;

class FaultCtr : public FaultTest {
 protected:
  static Status Call(const Words& words) { return ToStatus(Ctr(words)); }

  static Status ToStatus(const Output& output, int expected = 0) {
    if (output.status == expected) {
      return {};
    }
    return Fail(Code::kUnknown, "{}", output.Text());
  }

  static std::function<void()> IsIn(const std::string& id, const std::string& state) {
    return [=] { EXPECT_EQ(FindTask(id).state, state); };
  }

  static void Forget(const std::string& id) {
    Ctr({"tasks", "rm", "-f", id});
    Ctr({"containers", "rm", id});
  }

  static Step Exec(const std::string& id) {
    return {.operation = "Exec to Delete",
            .run = [=]() -> Status {
              const Output done = E2eTest::Exec(id, {"sh", "-c", "echo out; echo err >&2; exit 5"});
              GANTRY_CHECK_OK(ToStatus(done, 5));
              EXPECT_EQ(done.out, "out\n");
              EXPECT_EQ(done.err, "err\n");
              return {};
            },
            .check = IsIn(id, "RUNNING"),
            .optional = true};
  }

  static Step Simple(const char* operation, const Words& words, const std::string& id,
                     const std::string& state) {
    return {.operation = operation,
            .run = [=] { return Call(words); },
            .check = IsIn(id, state),
            .optional = true};
  }

  static Step WithNext(Step step) {
    step.with_next = true;
    return step;
  }

  Life Detached(const std::string& id) {
    const std::vector<Step> steps = {
        {.operation = "Create and Start",
         .run =
             [=] {
               return ToStatus(RunContainer(
                   {"-d"}, id, {"sh", "-c", "trap 'exit 7' TERM; while :; do usleep 5000; done"}));
             },
         .check = IsIn(id, "RUNNING"),
         .undo = [=] { Forget(id); }},
        Exec(id),
        Simple("Stats", {"tasks", "metrics", id}, id, "RUNNING"),
        Simple("Pids", {"tasks", "ps", id}, id, "RUNNING"),
        WithNext(Simple("Pause", {"tasks", "pause", id}, id, "PAUSED")),
        Simple("Resume", {"tasks", "resume", id}, id, "RUNNING"),
        {.operation = "Kill and the end",
         .run = [=]() -> Status {
           GANTRY_CHECK_OK(Call({"tasks", "kill", "-s", "TERM", id}));
           EXPECT_TRUE(WaitForState(id, "STOPPED"));
           return {};
         },
         .check = IsIn(id, "STOPPED")},
        {.operation = "Delete",
         .run = [=]() -> Status {
           const Output done = Ctr({"tasks", "rm", id});
           GANTRY_CHECK_OK(ToStatus(done));
           EXPECT_NE(done.err.find("non-zero exit code 7"), std::string::npos) << done.Text();
           return Status();
         },
         .check = [=] { EXPECT_EQ(FindTask(id).pid, 0); }},
    };
    return {.steps = steps,
            .end = [=, this](bool undisturbed) { End(id, undisturbed); },
            .give_up = [=] { Forget(id); }};
  }

  void End(const std::string& id, bool undisturbed) {
    EXPECT_EQ(Ctr({"containers", "rm", id}).status, 0);
    const auto topics = e2e::Events::TopicsOnce(events().Until("/tasks/delete", id));
    if (undisturbed) {
      // What is optional may be left out.
      std::vector<std::string> essential;
      std::ranges::copy_if(topics, std::back_inserter(essential), [](const std::string& topic) {
        return !topic.starts_with("exec-") && !topic.starts_with("exit(") && topic != "paused" &&
               topic != "resumed";
      });
      EXPECT_THAT(essential, ElementsAreArray({"create", "start", "exit", "delete"}));
    }
  }
};

TEST_F(FaultCtr, InEachStep) {
  Sweep("container", [this](const std::string& suffix) { return Detached(Id(suffix)); });
}

TEST_F(FaultCtr, UpgradedInEachStep) {
  Sweep(
      "container", [this](const std::string& suffix) { return Detached(Id(suffix)); },
      Of::kUpgrades);
}

}  // namespace
}  // namespace gantry::fault
