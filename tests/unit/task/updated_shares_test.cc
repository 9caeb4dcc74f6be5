// SPDX-License-Identifier: Apache-2.0
//
// Updates of a container's CPU shares on cgroup v2: the weight is made as the container's
// runtime makes it.
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/config/config.h"
#include "tests/unit/cgroup/fake_cgroupfs.h"
#include "tests/unit/pod/pod_test.h"

namespace gantry::task {
namespace {

class UpdatedShares : public PodTest {
 protected:
  /// A container of 1024 shares, to which its runtime gave `weight`.
  void RunWith(const std::string& weight) {
    files_.Put("cgroup.controllers", "cpu\n");
    files_.Put("pods/cgroup.controllers", "cpu\n");
    files_.Put("pods/c1/cpu.weight", "1\n");
    around_.cgroups = *cgroup::CgroupHierarchy::At(files_.path());
    RestartEngine();
    backend_.UseContext([](ContainerContext& context, bool recovered) -> Status {
      return recovered ? Status() : MakeIn(context);
    });
    backend_.LeaveOut("update");
    Announce("c1");
    const std::string spec =
        R"({"ociVersion":"1.2.0","process":{"args":["/bin/true"],"cwd":"/"},)"
        R"("root":{"path":"rootfs"},"linux":{"cgroupsPath":"/pods/c1",)"
        R"("resources":{"cpu":{"shares":1024}},"namespaces":[{"type":"pid"},{"type":"mount"}]}})";
    ASSERT_TRUE(ReplaceFile(dir_.path() + "/c1/config.json", spec, 0644));
    const auto created = Create("c1");
    ASSERT_TRUE(created) << created.error().message;
    files_.Put("pods/c1/cpu.weight", weight);
    ASSERT_TRUE(Start("c1"));
  }

  static Status MakeIn(ContainerContext& context) {
    GANTRY_TRY([[maybe_unused]] const auto made, context.MakeCgroups(CgroupDevices::kOfSpec));
    return {};
  }

  /// The weight afterwards.
  std::string Update(uint64_t shares) {
    pb::UpdateTaskRequest request;
    request.set_id("c1");
    request.mutable_resources()->set_value(Format(R"({{"cpu":{{"shares":{}}}}})", shares));
    const auto updated = Ask<wire::Empty>("Update", request, "c1");
    return updated ? files_.Get("pods/c1/cpu.weight") : updated.error().message;
  }

  os::FakeCgroupFs files_;
};

TEST_F(UpdatedShares, AreWeighedAsTheRuntimeDidBefore) {
  RunWith("39\n");
  EXPECT_EQ(Update(2048), "79\n");
  EXPECT_EQ(Update(1024), "39\n");
}

TEST_F(UpdatedShares, AreWeighedAsTheRuntimeDoesToday) {
  RunWith("100\n");
  EXPECT_EQ(Update(2048), "174\n");
  EXPECT_EQ(Update(1024), "100\n");
}

TEST_F(UpdatedShares, AreWeighedTheSameByTheNextEngine) {
  RunWith("39\n");
  EXPECT_EQ(Update(2048), "79\n");
  RestartEngine();
  EXPECT_EQ(Update(1024), "39\n");
}

TEST_F(UpdatedShares, AreWeighedTheSameWhereTheRecordWasNotWritten) {
  // As an engine leaves it that is killed between the two.
  RunWith("79\n");
  EXPECT_EQ(Update(2048), "79\n");
  EXPECT_EQ(Update(1024), "39\n");
}

TEST_F(UpdatedShares, OfAWeightOfNoFormulaAreWeighedAsToday) {
  RunWith("55\n");
  EXPECT_EQ(Update(256), "35\n");
}

}  // namespace
}  // namespace gantry::task
