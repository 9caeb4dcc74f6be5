// SPDX-License-Identifier: Apache-2.0
//
// A cgroup of the kernel's, of v1 or of v2, that goes with its test.
#pragma once

#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {

/// The node's trees of the one or the other version.
inline Result<CgroupHierarchy> KernelTree(bool v2) {
  GANTRY_TRY(CgroupHierarchy node, CgroupHierarchy::OfNode());
  if (!v2) {
    return node.v1().contains("freezer")
               ? Result<CgroupHierarchy>(node)
               : Fail(Code::kNotFound, "the node has no cgroup v1 freezer");
  }
  if (node.unified().mount_dir.empty()) {
    return Fail(Code::kNotFound, "the node has no cgroup v2");
  }
  return CgroupHierarchy::At(node.unified().mount_dir);
}

/// Skips where there is none, or none may be made. Its parameter: v2.
class KernelCgroup : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const auto hierarchy = KernelTree(GetParam());
    if (geteuid() != 0 || !hierarchy) {
      GTEST_SKIP() << (hierarchy ? "needs root" : hierarchy.error().message);
    }
    hierarchy_ = *hierarchy;
    auto made = Cgroup::Create(hierarchy_, "/gantry-test-" + RandomName(12));
    if (!made && made.error().code == Code::kPermissionDenied) {
      GTEST_SKIP() << "cannot make cgroups here: " << made.error().message;
    }
    ASSERT_TRUE(made) << made.error().message;
    cgroup_ = *std::move(made);
  }

  void TearDown() override {
    if (!cgroup_.empty()) {
      EXPECT_TRUE(cgroup_.Kill(os::kBound));
      EXPECT_TRUE(cgroup_.Remove(os::kBound));
      EXPECT_FALSE(cgroup_.Exists());
    }
  }

  CgroupHierarchy hierarchy_;
  Cgroup cgroup_;
};

inline std::string TreeName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "V2" : "V1";
}

}  // namespace gantry::cgroup
