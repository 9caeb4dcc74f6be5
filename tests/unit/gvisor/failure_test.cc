// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/failure.h"

#include <gtest/gtest.h>

namespace gantry::urpc {
namespace {

struct Said {
  const char* text;
  Cause cause;
  Code code;
};

class RefusalTest : public testing::TestWithParam<Said> {};

TEST_P(RefusalTest, HasTheClassThatContainerdKnows) {
  const Failure failure = Refusal("containerManager.X", GetParam().text);
  EXPECT_EQ(failure.cause, GetParam().cause) << GetParam().text;
  EXPECT_EQ(failure.code, GetParam().code) << GetParam().text;
  EXPECT_EQ(failure.text, GetParam().text);
}

// As runsc 20240729 and 2026-09 say it.
INSTANTIATE_TEST_SUITE_P(
    Sentry, RefusalTest,
    testing::Values(
        Said{"unknown method", Cause::kRefused, Code::kUnimplemented},
        Said{R"(container "x" not found)", Cause::kRefused, Code::kNotFound},
        Said{R"(container "x" not started)", Cause::kRefused, Code::kFailedPrecondition},
        Said{R"(container "x" already exists)", Cause::kRefused, Code::kAlreadyExists},
        Said{R"(container "x" has stopped)", Cause::kRefused, Code::kFailedPrecondition},
        Said{"waiting for PID 32: no such process", Cause::kRefused, Code::kNotFound},
        Said{R"(signaling process in container "x" PID 9: no such process with PID 9)",
             Cause::kRefused, Code::kNotFound},
        Said{"failed to load /nonexist: no such file or directory", Cause::kWorkload,
             Code::kInvalidArgument},
        Said{R"(error finding executable "nosuch" in PATH [/bin]: no such file or directory)",
             Cause::kWorkload, Code::kInvalidArgument},
        Said{R"(failed to find initial working directory "/no": no such file or directory)",
             Cause::kWorkload, Code::kInvalidArgument},
        Said{"sandbox is not in started state, cannot: state=created", Cause::kRefused,
             Code::kFailedPrecondition},
        Said{R"(trying to start a deleted container "x")", Cause::kRefused, Code::kNotFound},
        Said{"no TTY attached", Cause::kRefused, Code::kFailedPrecondition},
        Said{"something new", Cause::kRefused, Code::kInternal}));

TEST(ToError, SaysWhichCallItWas) {
  const Error error = ToError(Refusal("containerManager.Wait", R"(container "x" not found)"));
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.message, R"(containerManager.Wait: container "x" not found)");
}

TEST(ToError, LeavesOutAStack) {
  const Failure failure =
      Refusal("m", "nil pointer:\ngoroutine 14 [running]:\nstate.go:309 +0x170");
  EXPECT_EQ(ToError(failure).message, "m: nil pointer");
}

}  // namespace
}  // namespace gantry::urpc
