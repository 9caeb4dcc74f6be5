// SPDX-License-Identifier: Apache-2.0
#include "core/task/state.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace gantry::task {
namespace {

constexpr std::array kStates = {State::kNone,     State::kCreating, State::kCreated,
                                State::kStarting, State::kRunning,  State::kPaused,
                                State::kStopped,  State::kDeleting};

/// The states in which `operation` is legal, one letter each: created,
/// Starting, running, paused, sTopped.
std::string LegalIn(Operation operation) {
  constexpr std::string_view kLetters = ".-cSrpTx";
  std::string legal;
  for (size_t i = 0; i < kStates.size(); ++i) {
    if (CheckLegal(operation, kStates[i], "container 'a'")) {
      legal += kLetters[i];
    }
  }
  return legal;
}

Code CodeIn(Operation operation, State state) {
  const Status status = CheckLegal(operation, state, "container 'a'");
  return status ? Code::kOk : status.error().code;
}

TEST(CheckLegal, AllowsEachOperationInItsStates) {
  EXPECT_EQ(LegalIn(Operation::kStart), "cS");
  EXPECT_EQ(LegalIn(Operation::kDelete), "cST");
  EXPECT_EQ(LegalIn(Operation::kExec), "r");
  EXPECT_EQ(LegalIn(Operation::kPause), "r");
  EXPECT_EQ(LegalIn(Operation::kResume), "p");
  EXPECT_EQ(LegalIn(Operation::kUpdate), "cSrp");
  EXPECT_EQ(LegalIn(Operation::kCheckpoint), "rp");
  EXPECT_EQ(LegalIn(Operation::kKill), "cSrp");
  EXPECT_EQ(LegalIn(Operation::kResize), "cSrp");
}

TEST(CheckLegal, SaysThatASignalCameTooLate) {
  const Status status = CheckLegal(Operation::kKill, State::kStopped, "container 'a'");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNotFound);
  EXPECT_EQ(status.error().message, "process already finished: not found");
}

TEST(CheckLegal, NamesOperationObjectAndState) {
  const Status status = CheckLegal(Operation::kExec, State::kStopped, "container 'a'");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(status.error().message, "exec in container 'a': it is stopped: failed precondition");
}

TEST(CheckLegal, KnowsNothingOfWhatIsGone) {
  for (const Operation operation : {Operation::kStart, Operation::kDelete, Operation::kExec,
                                    Operation::kPause, Operation::kKill}) {
    EXPECT_EQ(CodeIn(operation, State::kNone), Code::kNotFound);
    EXPECT_EQ(CodeIn(operation, State::kCreating), Code::kFailedPrecondition);
    EXPECT_EQ(CodeIn(operation, State::kDeleting), Code::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace gantry::task
