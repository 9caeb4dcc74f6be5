// SPDX-License-Identifier: Apache-2.0
//
// Cgroups that an OCI runtime has made and left: removed with the container where nobody uses them.
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {
namespace {

/// Somebody's process in /proc.
class ProcessOfProc final : public HostProcess {
 public:
  HostPid pid() const override { return HostPid{77}; }

  uint64_t start_time() const override { return 0; }

  Status Signal(int) override { return {}; }

  std::optional<WaitStatus> Ended() const override { return std::nullopt; }

  Result<WaitStatus> Wait(std::chrono::milliseconds) override {
    return Fail(Code::kDeadlineExceeded, "it runs on");
  }
};

class LeftCgroups : public TaskTest {
 protected:
  /// Its runtime has made the cgroup, and nobody removes it.
  void RunIn(const std::string& path) {
    files_.Put("cgroup.controllers", "pids\n");
    files_.Put("proc/77/cgroup", "0::" + path + "\n");
    std::filesystem::create_directories(files_.path() + path);
    around_.cgroups = *cgroup::CgroupHierarchy::At(files_.path());
    around_.cgroups.SetProcDirForTest(files_.path() + "/proc");
    RestartEngine();
    backend_.UseContext([](ContainerContext& context, bool recovered) {
      return recovered ? Status() : context.UseCgroupsOf(ProcessOfProc());
    });
    Run("c1");
  }

  bool IsThere(const std::string& path) const { return Exists(files_.path() + path); }

  os::FakeCgroupFs files_;
};

TEST_F(LeftCgroups, GoWithTheContainer) {
  RunIn("/pods/c1");
  End("c1", 3);
  backend_.FailNext("delete c1", Error{Code::kUnavailable, 0, "not now", {}});
  EXPECT_FALSE(Delete("c1"));
  EXPECT_TRUE(IsThere("/pods/c1")) << "the backend has not deleted it";
  ASSERT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere("/pods/c1"));
  EXPECT_TRUE(IsThere("/pods"));
}

TEST_F(LeftCgroups, GoWhereAnotherEngineDeletes) {
  RunIn("/pods/c1");
  RestartEngine();
  EXPECT_EQ(State("c1")->status(), pb::RUNNING);
  End("c1", 3);
  ASSERT_TRUE(Delete("c1"));
  EXPECT_FALSE(IsThere("/pods/c1"));
}

TEST_F(LeftCgroups, ThatOthersUseStay) {
  RunIn("/pods/c1");
  std::filesystem::create_directories(files_.path() + "/pods/c1/anothers");
  End("c1", 3);
  ASSERT_TRUE(Delete("c1"));
  EXPECT_TRUE(IsThere("/pods/c1/anothers"));
}

TEST_F(LeftCgroups, ThatTheBackendHasRemovedAreFine) {
  RunIn("/pods/c1");
  std::filesystem::remove(files_.path() + "/pods/c1");
  End("c1", 3);
  EXPECT_TRUE(Delete("c1"));
}

}  // namespace
}  // namespace gantry::task
