// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::HasSubstr;

TEST(Needs, NamesTheRuntimesVersion) {
  const TempDir dir;
  Write(dir / "crun", "#!/bin/sh\necho crun version 9.9\necho more\n", 0755);
  Options options;
  options.path = dir.path();
  const auto needs = FindNeeds(options, {.mode = cgroup::CgroupMode::kNone, .unclaimed = {}});
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_TRUE(needs[0].met);
  EXPECT_EQ(needs[0].detail, dir / "crun" + ": crun version 9.9");
  EXPECT_FALSE(needs[1].met);
  EXPECT_FALSE(needs[2].met);
}

TEST(Needs, TellWhichRuntimeTheNodesCgroupsAllow) {
  const TempDir dir;
  const cgroup::NodeCgroups hybrid{.mode = cgroup::CgroupMode::kHybrid,
                                   .unclaimed = "hugetlb misc"};
  Options options;
  options.path = dir.path();
  Write(dir / "crun", "#!/bin/sh\necho crun version 9.9\n", 0755);
  const auto alone = FindNeeds(options, hybrid);
  EXPECT_FALSE(alone[1].met);
  EXPECT_THAT(alone[1].detail, HasSubstr("only the v2 tree has (hugetlb misc)"));
  EXPECT_THAT(alone[1].detail, HasSubstr("install runc"));
  Write(dir / "runc", "#!/bin/sh\necho runc version 1.1\n", 0755);
  const auto both = FindNeeds(options, hybrid);
  EXPECT_THAT(both[0].detail, HasSubstr(dir / "runc" + ": runc version 1.1; taken since '" +
                                        dir / "crun" + "' refuses"));
  EXPECT_TRUE(both[1].met) << both[1].detail;
}

TEST(Needs, ReportsARuntimeThatDoesNotAnswer) {
  const TempDir dir;
  Options options;
  options.path = dir.path();
  EXPECT_THAT(FindNeeds(options)[0].detail, HasSubstr("install the package"));
  Write(dir / "runc", "#!/bin/sh\nexit 1\n", 0755);
  const auto need = FindNeeds(options)[0];
  EXPECT_FALSE(need.met);
  EXPECT_THAT(need.detail, HasSubstr("does not answer"));
}

}  // namespace
}  // namespace gantry::runc
