// SPDX-License-Identifier: Apache-2.0
//
// Every call in every state of a container or exec: what is legal, and with
// which code the rest is refused. A refusal changes nothing.
#include <signal.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/contract/harness/calls.h"
#include "tests/contract/harness/contract_test.h"

namespace gantry::contract {
namespace {

constexpr const char* kNoLimits = R"({"pids":{"limit":1000}})";

/// A call and the code that it must answer with.
struct Expectation {
  const char* what;
  std::function<Code(const Box&)> call;
  Code code;
};

Code Start(const Box& box) { return CodeOf(box.Start()); }

Code Delete(const Box& box) { return CodeOf(box.Delete()); }

Code State(const Box& box) { return CodeOf(box.State()); }

Code Wait(const Box& box) { return CodeOf(box.Wait()); }

Code Kill(const Box& box) { return CodeOf(box.Kill(SIGKILL)); }

Code KillAll(const Box& box) { return CodeOf(box.Kill(SIGKILL, "", true)); }

Code Exec(const Box& box) { return CodeOf(box.Exec("extra", {"true"})); }

Code Pause(const Box& box) { return CodeOf(box.Pause()); }

Code Resume(const Box& box) { return CodeOf(box.Resume()); }

Code Resize(const Box& box) { return CodeOf(box.Resize()); }

Code CloseIO(const Box& box) { return CodeOf(box.CloseIO()); }

Code Update(const Box& box) { return CodeOf(box.Update(kNoLimits)); }

Code Checkpoint(const Box& box) { return CodeOf(box.Checkpoint()); }

Code Stats(const Box& box) { return CodeOf(box.Stats()); }

Code Pids(const Box& box) { return CodeOf(box.Pids()); }

Code Connect(const Box& box) { return CodeOf(box.Connect()); }

Code Shutdown(const Box& box) { return CodeOf(box.Shutdown()); }

void ExpectAll(const Box& box, const std::vector<Expectation>& rows) {
  for (const Expectation& row : rows) {
    const Code answer = row.call(box);
    if (!IsLeftOut(row.what, answer)) {
      EXPECT_EQ(CodeName(answer), CodeName(row.code)) << row.what;
    }
  }
}

const std::vector<Expectation> kAllNotFound = {
    {"Start", Start, Code::kNotFound},
    {"Delete", Delete, Code::kNotFound},
    {"State", State, Code::kNotFound},
    {"Wait", Wait, Code::kNotFound},
    {"Kill", Kill, Code::kNotFound},
    {"Kill all", KillAll, Code::kNotFound},
    {"Exec", Exec, Code::kNotFound},
    {"Pause", Pause, Code::kNotFound},
    {"Resume", Resume, Code::kNotFound},
    {"ResizePty", Resize, Code::kNotFound},
    {"CloseIO", CloseIO, Code::kNotFound},
    {"Update", Update, Code::kNotFound},
    {"Checkpoint", Checkpoint, Code::kNotFound},
    {"Stats", Stats, Code::kNotFound},
    {"Pids", Pids, Code::kNotFound},
    {"Connect", Connect, Code::kOk},
    {"Shutdown", Shutdown, Code::kOk},
};

/// Legal from Create to the end of the process.
const std::vector<Expectation> kLegalWhileThere = {
    {"ResizePty", Resize, Code::kOk},  {"CloseIO", CloseIO, Code::kOk},
    {"Update", Update, Code::kOk},     {"Stats", Stats, Code::kOk},
    {"Pids", Pids, Code::kOk},         {"Connect", Connect, Code::kOk},
    {"Shutdown", Shutdown, Code::kOk},
};

class States : public ContractTest {
 protected:
  static pb::Status StatusOf(const Box& box, const std::string& exec = "") {
    const auto state = box.State(exec);
    EXPECT_OK(state);
    return state ? state->status() : pb::UNKNOWN;
  }
};

TEST_P(States, BeforeCreateNothingIsThere) {
  Box& box = Announced();
  ExpectAll(box, kAllNotFound);
  const auto state = box.State();
  EXPECT_EQ(MessageOf(state), "container not created: not found");
}

TEST_P(States, ConnectBeforeCreateHasNoTask) {
  Box& box = Announced();
  const auto connected = box.Connect();
  ASSERT_OK(connected);
  EXPECT_EQ(connected->task_pid(), 0U);
  EXPECT_EQ(connected->shim_pid(), static_cast<uint32_t>(node().keeper()));
}

TEST_P(States, Created) {
  Box& box = Created();
  ExpectAll(box, {{"Create", [](const Box& b) { return CodeOf(b.Create()); }, Code::kAlreadyExists},
                  {"Exec", Exec, Code::kFailedPrecondition},
                  {"Pause", Pause, Code::kFailedPrecondition},
                  {"Resume", Resume, Code::kFailedPrecondition},
                  {"Checkpoint", Checkpoint, Code::kFailedPrecondition}});
  ExpectAll(box, kLegalWhileThere);
  EXPECT_EQ(StatusOf(box), pb::CREATED);
  EXPECT_OK(box.Start());
}

TEST_P(States, Running) {
  Box& box = Running();
  ExpectAll(box, {{"Create", [](const Box& b) { return CodeOf(b.Create()); }, Code::kAlreadyExists},
                  {"Start", Start, Code::kFailedPrecondition},
                  {"Delete", Delete, Code::kFailedPrecondition},
                  {"Resume", Resume, Code::kFailedPrecondition}});
  ExpectAll(box, kLegalWhileThere);
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
}

TEST_P(States, RunningRefusesSignalsThatAreNone) {
  Box& box = Running();
  EXPECT_CODE(box.Kill(65), kInvalidArgument);
  EXPECT_CODE(box.Kill(4000000000U), kInvalidArgument);
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
}

TEST_P(States, Paused) {
  Box& box = Paused();
  ExpectAll(box, {{"Start", Start, Code::kFailedPrecondition},
                  {"Delete", Delete, Code::kFailedPrecondition},
                  {"Pause", Pause, Code::kFailedPrecondition},
                  {"Update", Update, Code::kOk},
                  {"Stats", Stats, Code::kOk},
                  {"Pids", Pids, Code::kOk},
                  {"Exec", Exec, Code::kOk},
                  {"Shutdown", Shutdown, Code::kOk}});
  EXPECT_EQ(StatusOf(box), pb::PAUSED);
  EXPECT_OK(box.Resume());
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
}

TEST_P(States, Stopped) {
  Box& box = Stopped();
  ExpectAll(box, {{"Create", [](const Box& b) { return CodeOf(b.Create()); }, Code::kAlreadyExists},
                  {"Start", Start, Code::kFailedPrecondition},
                  {"Exec", Exec, Code::kFailedPrecondition},
                  {"Pause", Pause, Code::kFailedPrecondition},
                  {"Resume", Resume, Code::kFailedPrecondition},
                  {"Update", Update, Code::kFailedPrecondition},
                  {"Checkpoint", Checkpoint, Code::kFailedPrecondition},
                  {"Kill", Kill, Code::kNotFound},
                  {"Kill all", KillAll, Code::kOk},
                  {"State", State, Code::kOk},
                  {"Wait", Wait, Code::kOk},
                  {"CloseIO", CloseIO, Code::kOk},
                  {"Stats", Stats, Code::kOk},
                  {"Pids", Pids, Code::kOk},
                  {"Connect", Connect, Code::kOk},
                  {"Shutdown", Shutdown, Code::kOk}});
  EXPECT_EQ(MessageOf(box.Kill(SIGKILL)), "process already finished: not found");
  const auto state = box.State();
  ASSERT_OK(state);
  EXPECT_EQ(state->status(), pb::STOPPED);
  EXPECT_EQ(state->exit_status(), 7U);
  EXPECT_GT(state->pid(), 0U);
  EXPECT_FALSE(Got(box.Pids()).processes().empty()) << "containerd takes an empty list for a leak";
}

TEST_P(States, DeletedTwiceIsNotFound) {
  Box& box = Stopped();
  const auto deleted = box.Delete();
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->exit_status(), 7U);
  ExpectAll(box, kAllNotFound);
}

TEST_P(States, CreatedCanBeDeleted) {
  Box& box = Created();
  EXPECT_OK(box.Delete());
  ExpectAll(box, kAllNotFound);
}

TEST_P(States, CreatedCanBeKilled) {
  Box& box = Created();
  EXPECT_OK(box.Kill(SIGKILL));
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_CODE(box.Start(), kFailedPrecondition);
  EXPECT_OK(box.Delete());
}

TEST_P(States, PausedCanBeKilled) {
  Box& box = Paused();
  EXPECT_OK(box.Kill(SIGKILL));
  const auto ended = box.Wait();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
}

TEST_P(States, CheckpointIsDoneOrRefused) {
  // criu interrupts a sleep, which then ends early.
  Box& box = Running({.args = {"sh", "-c", "while true; do sleep 1000; done"}});
  if (TheSetup().anybodys) {
    if (const Status done = box.Checkpoint(); CodeOf(done) == Code::kUnimplemented) {
      GTEST_SKIP() << "not supported: " << MessageOf(done);
    }
  } else if (IsSupported(backend(), "checkpoint")) {
    // Without criu on the node the backend says that it is missing.
    EXPECT_NE(CodeOf(box.Checkpoint()), Code::kUnimplemented);
  } else {
    EXPECT_CODE(box.Checkpoint(), kUnimplemented);
  }
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
}

TEST_P(States, UpdateRefusesWhatIsNoResources) {
  Box& box = Running();
  EXPECT_CODE(box.Update("not JSON"), kInvalidArgument);
  EXPECT_CODE(box.Update(R"({"memory":{"limit":"much"}})"), kInvalidArgument);
  const Status updated = box.Update("{}");
  if (!IsLeftOut("Update", CodeOf(updated))) {
    EXPECT_OK(updated);
  }
}

TEST_P(States, UnknownExecs) {
  Box& box = Running();
  EXPECT_CODE(box.Start("nope"), kNotFound);
  EXPECT_CODE(box.Delete("nope"), kNotFound);
  EXPECT_CODE(box.State("nope"), kNotFound);
  EXPECT_CODE(box.Wait("nope"), kNotFound);
  EXPECT_CODE(box.Kill(SIGKILL, "nope"), kNotFound);
  EXPECT_CODE(box.Resize("nope"), kNotFound);
  EXPECT_CODE(box.CloseIO("nope"), kNotFound);
  EXPECT_EQ(MessageOf(box.State("nope")), "process does not exist nope: not found");
}

TEST_P(States, CreatedExec) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"true"}));
  EXPECT_CODE(box.Exec("x1", {"true"}), kAlreadyExists);
  EXPECT_EQ(StatusOf(box, "x1"), pb::CREATED);
  EXPECT_CODE(box.Kill(SIGKILL, "x1"), kFailedPrecondition);
  const Status resized = box.Resize("x1");
  if (!IsLeftOut("ResizePty", CodeOf(resized))) {
    EXPECT_OK(resized);
  }
  EXPECT_OK(box.CloseIO("x1"));
  EXPECT_OK(box.Delete("x1"));
  EXPECT_CODE(box.State("x1"), kNotFound);
  EXPECT_OK(box.Exec("x1", {"true"})) << "its id is free again";
}

TEST_P(States, RunningExec) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sleep", "1000"}));
  ASSERT_OK(box.Start("x1"));
  EXPECT_EQ(StatusOf(box, "x1"), pb::RUNNING);
  EXPECT_CODE(box.Start("x1"), kFailedPrecondition);
  EXPECT_CODE(box.Delete("x1"), kFailedPrecondition);
  EXPECT_CODE(box.Exec("x1", {"true"}), kAlreadyExists);
  EXPECT_OK(box.Kill(SIGKILL, "x1"));
  const auto ended = box.Wait("x1");
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
  EXPECT_OK(box.Delete("x1"));
}

TEST_P(States, StoppedExec) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sh", "-c", "exit 5"}));
  ASSERT_OK(box.Start("x1"));
  const auto ended = box.Wait("x1");
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 5U);
  EXPECT_EQ(StatusOf(box, "x1"), pb::STOPPED);
  EXPECT_CODE(box.Start("x1"), kFailedPrecondition);
  EXPECT_CODE(box.Kill(SIGKILL, "x1"), kNotFound);
  EXPECT_OK(box.Wait("x1"));
  const auto deleted = box.Delete("x1");
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->exit_status(), 5U);
  EXPECT_CODE(box.Delete("x1"), kNotFound);
}

TEST_P(States, ExecThatCannotBeRunStaysCreatedAndCanBeDeleted) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"/no/such/program"}));
  const auto started = box.Start("x1");
  EXPECT_FALSE(started.has_value());
  EXPECT_NE(MessageOf(started).find("/no/such/program"), std::string::npos) << MessageOf(started);
  EXPECT_OK(box.Wait("x1"));
  EXPECT_EQ(Got(box.State("x1")).status(), pb::CREATED);
  EXPECT_CODE(box.Start("x1"), kFailedPrecondition);
  const auto deleted = box.Delete("x1");
  ASSERT_OK(deleted);
  EXPECT_EQ(deleted->pid(), 0U);
  EXPECT_EQ(StatusOf(box), pb::RUNNING);
}

TEST_P(States, ExecsEndWithTheirContainer) {
  Box& box = Running();
  ASSERT_OK(box.Exec("x1", {"sleep", "1000"}));
  ASSERT_OK(box.Start("x1"));
  ASSERT_OK(box.Exec("x2", {"true"}));
  ASSERT_OK(box.Kill(SIGKILL));
  const auto ended = box.Wait("x1");
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
  EXPECT_OK(box.Wait());
  EXPECT_CODE(box.Start("x2"), kFailedPrecondition);
  EXPECT_OK(box.Delete("x1"));
  EXPECT_OK(box.Delete("x2"));
}

TEST_P(States, ResizeOfAnEndedTerminalIsRefused) {
  Box& box = Running({.args = {"sleep", "1000"}});
  ASSERT_OK(box.Exec("x1", {"true"}, true));
  ASSERT_OK(box.Start("x1"));
  ASSERT_OK(box.Wait("x1"));
  EXPECT_CODE(box.Resize("x1"), kFailedPrecondition);
}

TEST_P(States, MissingProgramIsNamed) {
  Box& box = Announced({.args = {"/no/such/program"}});
  const auto created = box.Create();
  const auto started = created ? box.Start() : Result<pb::StartResponse>(pb::StartResponse());
  const std::string message = MessageOf(created) + MessageOf(started);
  EXPECT_NE(message.find("/no/such/program"), std::string::npos) << message;
}

INSTANTIATE_CONTRACT(States);

}  // namespace
}  // namespace gantry::contract
