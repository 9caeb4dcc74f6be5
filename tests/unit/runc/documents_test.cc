// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::UnorderedElementsAre;

TEST(ReadSpec, FindsHooksPidsAndCgroup) {
  const auto facts = ReadSpec(R"({"hooks": {"poststart": [{"path": "/x"}], "poststop": []},
      "linux": {"cgroupsPath": "/a/b", "namespaces": [{"type": "mount"}, {"type": "pid"}]}})");
  ASSERT_TRUE(facts);
  EXPECT_TRUE(facts->has_poststart);
  EXPECT_FALSE(facts->has_poststop);
  EXPECT_TRUE(facts->private_pids);
  EXPECT_EQ(facts->cgroups_path, "/a/b");
}

TEST(ReadSpec, JoinedOrAbsentPidNamespaceIsNotPrivate) {
  EXPECT_FALSE(ReadSpec(R"({"linux": {"namespaces": [{"type": "pid", "path": "/proc/1/ns/pid"}]}})")
                   ->private_pids);
  EXPECT_FALSE(ReadSpec("{}")->private_pids);
}

TEST(ReadSpec, IgnoresWrongTypes) {
  const auto facts = ReadSpec(R"({"hooks": 3, "linux": {"cgroupsPath": "a:b:c", "namespaces":
      [1, {"type": 2}, null]}})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->cgroups_path, "");
  EXPECT_EQ(ReadSpec("[").error().code, Code::kInvalidArgument);
}

TEST(ReadState, ReadsCrun) {
  const TempDir dir;
  Write(dir / "status", R"({"pid": 7, "process-start-time": 112563, "cgroup-path": "/t/c1",
      "scope": "", "intelrdt": "", "systemd-cgroup": false})");
  const RuntimeState state = ReadState(dir.path());
  EXPECT_EQ(state.kind, StateKind::kCrun);
  EXPECT_EQ(state.pid.value, 7);
  EXPECT_EQ(state.start_time, 112563U);
  EXPECT_EQ(state.cgroup_path, "/t/c1");
  EXPECT_FALSE(state.needs_runtime);
}

TEST(ReadState, LeavesSystemdScopesToTheRuntime) {
  const TempDir dir;
  Write(dir / "status", R"({"pid": 7, "process-start-time": 5, "cgroup-path": "/t",
      "scope": "crun-c1.scope"})");
  EXPECT_TRUE(ReadState(dir.path()).needs_runtime);
}

TEST(ReadState, ReadsRunc) {
  const TempDir dir;
  Write(dir / "state.json", R"({"init_process_pid": 9, "init_process_start": 5,
      "cgroup_paths": {"": "/c/u/x", "cpu": "/c/cpu/x", "bad": 3}, "intel_rdt_path": ""})");
  const RuntimeState state = ReadState(dir.path());
  EXPECT_EQ(state.kind, StateKind::kRunc);
  EXPECT_EQ(state.pid.value, 9);
  EXPECT_EQ(state.start_time, 5U);
  EXPECT_THAT(state.cgroup_directories, UnorderedElementsAre("/c/u/x", "/c/cpu/x"));
}

TEST(ReadState, NamesNoProcessByItsNumberAlone) {
  const TempDir dir;
  Write(dir / "state.json", R"({"init_process_pid": 9, "cgroup_paths": {"": "/c/u/x"}})");
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kUnknown);
  EXPECT_FALSE(ReadState(dir.path()).pid);
  Write(dir / "status", R"({"pid": 7, "cgroup-path": "/t"})");
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kUnknown);
  EXPECT_FALSE(ReadState(dir.path()).pid);
  Write(dir / "status", R"({"pid": 0, "cgroup-path": "/t"})");
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kCrun) << "there is none to be mistaken";
}

TEST(ReadState, TellsNothingFromUnknown) {
  const TempDir dir;
  EXPECT_EQ(ReadState(dir / "none").kind, StateKind::kNone);
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kUnknown);
  Write(dir / "state.json", R"({"ociVersion": "1.0.2", "pid": 3})");
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kUnknown);
  Write(dir / "status", "{\"pid\": ");
  EXPECT_EQ(ReadState(dir.path()).kind, StateKind::kUnknown);
}

TEST(LastLogError, PrefersTheLastError) {
  EXPECT_EQ(LastLogError("{\"level\":\"error\",\"msg\":\"first\"}\n"
                         "{\"level\":\"error\",\"msg\":\"second\"}\n"
                         "{\"level\":\"warning\",\"msg\":\"later\"}\n"),
            "second");
}

TEST(FirstCriuError, LeavesOutWhatCriuGoesOnWithout) {
  EXPECT_EQ(FirstCriuError("(00.1) Dumping\n"
                           "(00.2) Error (criu/util.c:1533): rlimit: Can't setup RLIMIT_NOFILE\n"
                           "(00.3) Error (criu/files-reg.c:1790): Can't lookup mount=27\n"
                           "(00.4) Error (criu/cr-dump.c:2111): Dumping FAILED.\n"),
            "Can't lookup mount=27");
  EXPECT_EQ(FirstCriuError("(00.1) Error (cut"), "");
  EXPECT_EQ(FirstCriuError("(00.1) Error (cut\n(00.2) Note (here): not an error\n"), "");
  EXPECT_EQ(FirstCriuError(""), "");
}

TEST(Features, PromiseIdmappedMounts) {
  EXPECT_TRUE(
      PromisesIdmappedMounts(R"({"linux":{"mountExtensions":{"idmap":{"enabled":true}}}})"));
  EXPECT_FALSE(
      PromisesIdmappedMounts(R"({"linux":{"mountExtensions":{"idmap":{"enabled":false}}}})"));
  EXPECT_FALSE(PromisesIdmappedMounts("no JSON"));
}

TEST(LastLogError, FallsBackToTheLastText) {
  EXPECT_EQ(LastLogError("{\"level\":\"warning\",\"msg\":\"one\"}\n{\"level\":\"info\",\"msg\":"
                         "\"two\"}\nnot json\n"),
            "two");
  EXPECT_EQ(LastLogError("garbage\n\n[1]\n{\"msg\": 3}"), "");
  EXPECT_EQ(LastLogError(""), "");
}

}  // namespace
}  // namespace gantry::runc
