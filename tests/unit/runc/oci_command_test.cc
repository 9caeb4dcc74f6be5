// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/oci_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>

#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// An OCI runtime that is a shell script: `$LOG` is the file of `--log`.
class OciCommandTest : public testing::Test {
 protected:
  OciCommandTest() {
    options_.binary_name = dir_ / "oci";
    options_.root = dir_ / "root";
    options_.path = "/usr/bin:/bin";
  }

  void Script(const std::string& body) {
    Write(options_.binary_name, "#!/bin/sh\nLOG=$4\n" + body, 0755);
  }

  Status Run(std::chrono::milliseconds limit = std::chrono::seconds(10), bool capture = true) {
    OciCall call;
    call.verb = "create";
    call.object = "c1";
    call.args = {"--flag", "c1"};
    call.bundle = dir_.path();
    call.log_name = "init.log";
    call.capture = capture;
    call.limit = limit;
    return OciCommand(options_, Namespace::Parse("ns").value_or(Namespace()), context_)
        .Run(std::move(call));
  }

  TempDir dir_;
  Options options_;
  FakeSandboxContext context_{Orphans::kAdopted};
};

TEST_F(OciCommandTest, PassesGlobalFlagsAndRootWithNamespace) {
  options_.systemd_cgroup = true;
  Script("exit 0");
  ASSERT_TRUE(Run());
  EXPECT_THAT(context_.asked.at(0).argv,
              ElementsAre(dir_ / "oci", "--root", dir_ / "root/ns", "--log", dir_ / "init.log",
                          "--log-format", "json", "--systemd-cgroup", "create", "--flag", "c1"));
  EXPECT_THAT(context_.asked.at(0).env, ElementsAre("PATH=/usr/bin:/bin"));
}

TEST_F(OciCommandTest, ReportsAMissingBinary) {
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(status.error().message,
              HasSubstr("'" + options_.binary_name + "' (option 'BinaryName')"));
}

TEST_F(OciCommandTest, ReportsABinaryThatVanishes) {
  Script("exit 0");
  OciCommand command(options_, Namespace::Parse("ns").value_or(Namespace()), context_);
  command.Pin(dir_ / "gone");
  OciCall call;
  call.verb = "exec";
  call.object = "c1";
  call.bundle = dir_.path();
  call.log_name = "x.log";
  call.limit = std::chrono::seconds(1);
  const Status status = command.Run(std::move(call));
  EXPECT_THAT(status.error().message, HasSubstr("gone exec' for 'c1'"));
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
}

TEST_F(OciCommandTest, BlamesTheWorkloadInTheRuntimesWords) {
  Script(
      R"(echo '{"level":"error","msg":"exec: \"nosuch\": executable file not found in $PATH"}' > $LOG; exit 1)");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  EXPECT_EQ(status.error().message,
            "OCI runtime create failed: exec: \"nosuch\": executable file not found in $PATH");
  EXPECT_FALSE(IsThere(dir_ / "init.log"));
}

TEST_F(OciCommandTest, BlamesTheRuntimeForTheRest) {
  Script(R"(echo '{"level":"error","msg":"cgroups: cannot enable controllers"}' > $LOG; exit 1)");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_THAT(status.error().message, HasSubstr("cannot enable controllers"));
}

TEST_F(OciCommandTest, SaysWhatToDoOnANodeThatCrunRefuses) {
  Script(
      R"(echo '{"level":"error","msg":"cgroups in hybrid mode not supported, drop all controllers from cgroupv2"}' > $LOG; exit 1)");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("OCI runtime create failed: cgroups in hybrid mode"),
                    HasSubstr("mount -t cgroup -o "), HasSubstr("set BinaryName")));
}

TEST_F(OciCommandTest, ReportsAKilledRuntime) {
  Script("kill -9 $$");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_THAT(status.error().message, HasSubstr("it was killed by signal 9 (SIGKILL)"));
}

TEST_F(OciCommandTest, ShowsGarbagePrintably) {
  Script(R"(printf 'bl\001a\033[31m\nsecond' >&2; echo not-json > $LOG; exit 3)");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_THAT(status.error().message,
              HasSubstr("exit code 3, and no error in its log; it printed: bl?a?[31m second"));
}

TEST_F(OciCommandTest, SurvivesMegabytesOfGarbage) {
  Script("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero > $LOG; exit 1");
  const Status status = Run();
  EXPECT_EQ(status.error().code, Code::kInternal);
  EXPECT_LT(status.error().message.size(), 4096U);
  EXPECT_LT(status.error().detail.size(), 300'000U);
}

TEST_F(OciCommandTest, SaysSoWhenThereIsNoWord) {
  Script("exit 4");
  EXPECT_THAT(Run(std::chrono::seconds(10), false).error().message,
              HasSubstr("exit code 4, without a word why"));
}

TEST_F(OciCommandTest, KillsWhatHangsWithItsChildren) {
  Script("sleep 1000 & echo $! > " + dir_ / "child" + "; wait");
  const Status status = Run(std::chrono::milliseconds(300));
  EXPECT_EQ(status.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(status.error().message, HasSubstr("not done after 300 ms, killed"));
  const std::string child = Slurp(dir_ / "child");
  if (child != "(none)") {
    auto orphan = context_.Adopt({std::stoi(child)});
    ASSERT_TRUE(orphan);
    EXPECT_TRUE((*orphan)->Wait(std::chrono::seconds(10)));
  }
}

TEST_F(OciCommandTest, DoesNotWaitForThoseWhoKeepItsOutput) {
  Script("sleep 1000 & echo $! > " + dir_ / "child" + "; exit 0");
  EXPECT_TRUE(Run(std::chrono::seconds(60)));
  auto orphan = context_.Adopt({std::stoi(Slurp(dir_ / "child"))});
  ASSERT_TRUE(orphan);
  EXPECT_FALSE((*orphan)->Ended());
}

TEST_F(OciCommandTest, DropsAnOldLog) {
  Write(dir_ / "init.log", R"({"level":"error","msg":"old"})");
  Script("exit 1");
  EXPECT_THAT(Run().error().message, Not(HasSubstr("old")));
}

TEST(BlamesWorkload, KnowsTheRuntimesPhrases) {
  EXPECT_TRUE(BlamesWorkload("executable file `x` not found in $PATH: No such file or directory"));
  EXPECT_TRUE(
      BlamesWorkload("runc create failed: unable to start container process: exec: \"/x\": "
                     "permission denied"));
  EXPECT_TRUE(BlamesWorkload("exec /x: exec format error"));
  EXPECT_FALSE(BlamesWorkload("mount `proc` to `proc`: Operation not permitted"));
}

}  // namespace
}  // namespace gantry::runc
