// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/doctor.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/oci/json.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

using testing::HasSubstr;

// A node that is made of a folder.
class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir.has_value());
    dir_ = std::move(*dir);
    node_.root = dir_.path();
    node_.run_dir = dir_.path() + "/run/gantry";
    node_.libexec_dir = dir_.path() + "/libexec";
    node_.first_line = [](const std::vector<std::string>& argv) -> Result<std::string> {
      return "version of " + argv[0].substr(argv[0].rfind('/') + 1);
    };
    config_ = config::Defaults();
  }

  void File(const std::string& path, const std::string& text, mode_t mode = 0644) {
    const std::string full = dir_.path() + path;
    ASSERT_TRUE(os::MakeDirs(full.substr(0, full.rfind('/')), 0755).has_value());
    ASSERT_TRUE(os::WriteFileAtomic(full, text, mode).has_value());
  }

  void Program(const std::string& path) { File(path, "#!", 0755); }

  Finding Find(const std::string& area, const std::string& what) {
    const auto findings = Examine(node_, config_);
    const auto found = std::ranges::find_if(
        findings, [&](const Finding& f) { return f.area == area && f.what == what; });
    return found == findings.end() ? Finding() : *found;
  }

  os::TempDir dir_;
  Node node_;
  config::Config config_;
};

TEST_F(DoctorTest, FindsNothingOnAnEmptyNode) {
  const auto findings = Examine(node_, config_);
  EXPECT_FALSE(Healthy(findings));
  EXPECT_TRUE(std::ranges::none_of(findings, [](const Finding& f) { return f.level == "ok"; }));
  EXPECT_TRUE(std::ranges::none_of(findings, [](const Finding& f) { return f.detail.empty(); }))
      << FindingsTable(findings);
}

TEST_F(DoctorTest, IsContentWithACompleteNode) {
  File("/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
  File("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  File("/sys/fs/cgroup/cgroup.procs", "");
  for (const char* const program :
       {"/libexec/gantryd", "/libexec/gantry-keeper", "/usr/bin/containerd-shim-gantry-v1",
        "/usr/bin/containerd", "/usr/bin/crun", "/libexec/plugins/libgantry_runc.so"}) {
    Program(program);
  }
  const auto findings = Examine(node_, config_);
  EXPECT_TRUE(Healthy(findings)) << FindingsTable(findings);
  EXPECT_TRUE(oci::Json::Parse(FindingsJson(findings), "doctor").has_value());
}

TEST_F(DoctorTest, ChecksTheKernel) {
  File("/proc/sys/kernel/osrelease", "4.19.0\n");
  EXPECT_EQ(Find("node", "Linux 5.3 or later").level, "missing");
  File("/proc/sys/kernel/osrelease", "5.10.0\n");
  EXPECT_EQ(Find("node", "Linux 5.3 or later").level, "ok");
}

TEST_F(DoctorTest, NamesTheOciRuntimesWithTheirVersions) {
  Program("/usr/bin/crun");
  Program("/usr/sbin/runc");
  const Finding finding = Find("runc", "an OCI runtime");
  EXPECT_EQ(finding.level, "ok");
  EXPECT_THAT(finding.detail, HasSubstr("crun (version of crun)"));
  EXPECT_THAT(finding.detail, HasSubstr("runc (version of runc)"));
}

TEST_F(DoctorTest, IgnoresAProgramThatIsNotExecutable) {
  File("/usr/bin/crun", "");
  EXPECT_EQ(Find("runc", "an OCI runtime").level, "missing");
}

TEST_F(DoctorTest, ChecksTheBinaryThatAHandlerNames) {
  config_.handlers["runc"].options.json = R"({"BinaryName":"youki"})";
  EXPECT_EQ(Find("runc", "'youki' of handler 'runc'").level, "missing");
  Program("/usr/bin/youki");
  EXPECT_EQ(Find("runc", "'youki' of handler 'runc'").level, "ok");
}

TEST_F(DoctorTest, TellsUnusedFromMissing) {
  EXPECT_EQ(Find("gvisor", "runsc").level, "unused");
  EXPECT_EQ(Find("gvisor", "plugin").level, "");
  config_.backends["gvisor"];
  EXPECT_EQ(Find("gvisor", "runsc").level, "missing");
  EXPECT_EQ(Find("gvisor", "plugin").level, "missing");
}

TEST_F(DoctorTest, RefusesAnOldContainerd) {
  Program("/usr/bin/containerd");
  node_.first_line = [](const auto&) -> Result<std::string> {
    return "containerd github.com/containerd/containerd 1.5.18";
  };
  EXPECT_EQ(Find("containerd", "containerd 1.6 or later").level, "missing");
  node_.first_line = [](const auto&) -> Result<std::string> {
    return "containerd github.com/containerd/containerd 1.7.24";
  };
  EXPECT_EQ(Find("containerd", "containerd 1.6 or later").level, "ok");
}

}  // namespace
}  // namespace gantry::ctl
