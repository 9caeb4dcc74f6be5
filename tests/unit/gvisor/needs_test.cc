// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/gvisor/launch/proof_file.h"
#include "tests/unit/gvisor/fakes.h"

namespace gantry::gvisor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Needs : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
    options_.binary_name = FakeRunsc().WriteTo(dir_.path());
    options_.root = dir_.path() + "/root";
  }

  /// The one of that name.
  NodeNeed Find(const std::string& what) {
    for (const NodeNeed& need :
         FindNeeds(handlers_.empty() ? std::vector{options_} : handlers_, runscs_)) {
      if (need.what == what) {
        return need;
      }
    }
    return {.what = "(none)", .met = false, .optional = false, .detail = {}};
  }

  void Show(const std::string& failure) {
    const auto runsc = runscs_.Get(options_.binary_name);
    ASSERT_TRUE(runsc);
    ASSERT_TRUE(WriteProof(options_.root, **runsc, "systrap", failure));
  }

  os::TempDir dir_;
  Options options_;
  std::vector<Options> handlers_;
  RunscRegistry runscs_;
};

TEST_F(Needs, SayWhichRunscThereIs) {
  const NodeNeed need = Find("runsc");
  EXPECT_TRUE(need.met);
  EXPECT_EQ(need.detail, options_.binary_name + ": runsc version fake; rpc-fd: no; sidecar: none");
}

TEST_F(Needs, SayWhetherTheSentryIsOfTheSameRelease) {
  EXPECT_EQ(Find("sidecar").what, "(none)");
  FakeRunsc().WriteAsSidecar(dir_.path());
  const std::string sentry = dir_.path() + "/gvisor-bin/gvisor_sentry";
  RunscRegistry seen;
  EXPECT_TRUE(FindNeeds({options_}, seen)[1].met);
  EXPECT_EQ(FindNeeds({options_}, seen)[1].detail, sentry + ": of release 'fake', as runsc");
  FakeRunsc{.version = "next"}.WriteAsSidecar(dir_.path());
  const NodeNeed mixed = FindNeeds({options_}, seen)[1];
  EXPECT_FALSE(mixed.met);
  EXPECT_FALSE(mixed.optional);
  EXPECT_EQ(mixed.detail,
            "'" + options_.binary_name + "': its sentry '" + sentry +
                "' is of release 'next', it is of 'fake': install both of one release, or set "
                "runsc_config.sidecar-release-enforcement-policy to NEVER");
  options_.runsc_config["sidecar-release-enforcement-policy"] = "never";
  EXPECT_TRUE(FindNeeds({options_}, seen)[1].optional);
  FakeRunsc{.version = ""}.WriteAsSidecar(dir_.path());
  EXPECT_EQ(FindNeeds({options_}, seen)[1].detail, sentry + ": of a release that cannot be told");
}

TEST_F(Needs, SayWhatIsWrongWithRunsc) {
  options_.binary_name = "/nonexistent/runsc";
  EXPECT_FALSE(Find("runsc").met);
  EXPECT_THAT(Find("runsc").detail, HasSubstr("no such executable file"));
  EXPECT_EQ(Find("canary (systrap)").what, "(none)");
}

TEST_F(Needs, SayWhatTheCanaryHasShown) {
  NodeNeed need = Find("canary (systrap)");
  EXPECT_FALSE(need.met);
  EXPECT_TRUE(need.optional);
  EXPECT_EQ(need.detail, "not run yet; it runs with the first sandbox");
  Show("boot the sentry: it ended with 128");
  need = Find("canary (systrap)");
  EXPECT_FALSE(need.met);
  EXPECT_TRUE(need.optional);
  EXPECT_EQ(need.detail,
            "pods are started by 'runsc create', none is pre-booted: boot the sentry: it ended "
            "with 128");
  Show("");
  EXPECT_TRUE(Find("canary (systrap)").met);
}

TEST_F(Needs, SayWhichFlagABuildLacks) {
  options_.binary_name = FakeRunsc{.lacks = "--spec-fd"}.WriteTo(dir_.path());
  EXPECT_TRUE(Find("runsc").met);
  const NodeNeed need = Find("canary (systrap)");
  EXPECT_FALSE(need.met);
  EXPECT_TRUE(need.optional);
  EXPECT_THAT(need.detail, HasSubstr("this build has no 'boot --spec-fd'"));
}

TEST_F(Needs, SayWhetherThereAreUserNamespaces) {
  const NodeNeed need = Find("user namespaces");
  EXPECT_FALSE(need.optional);
  EXPECT_THAT(need.detail, testing::Not(IsEmpty()));
}

TEST_F(Needs, SayWhyPortsCannotBeForwarded) {
  // The program is beside the plugins, and none of them is beside this test.
  const NodeNeed need = Find("port forward");
  EXPECT_FALSE(need.met);
  EXPECT_TRUE(need.optional);
  EXPECT_THAT(need.detail, HasSubstr("gantry-forward"));
}

TEST_F(Needs, AskForKvmOnlyWhereItIsThePlatform) {
  EXPECT_EQ(Find("/dev/kvm").what, "(none)");
  options_.runsc_config["platform"] = "kvm";
  EXPECT_EQ(Find("/dev/kvm").what, "/dev/kvm");
  EXPECT_EQ(Find("canary (kvm)").detail, "not run yet; it runs with the first sandbox");
}

TEST_F(Needs, TellWhatHandlersShareOnce) {
  const size_t one = FindNeeds({options_}, runscs_).size();
  EXPECT_EQ(FindNeeds({options_, options_}, runscs_).size(), one);
}

}  // namespace
}  // namespace gantry::gvisor
