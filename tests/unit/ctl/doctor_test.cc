// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/doctor.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "core/os/fs.h"
#include "tests/unit/ctl/fake_backend.h"

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
    node_.find_backend = [this](const std::string&) -> Result<SandboxBackend*> {
      return &backend_;
    };
    config_ = config::Defaults();
  }

  void File(const std::string& path, const std::string& text, mode_t mode = 0644) {
    const std::string full = dir_.path() + path;
    ASSERT_TRUE(os::MakeDirs(full.substr(0, full.rfind('/')), 0755).has_value());
    ASSERT_TRUE(ReplaceFile(full, text, mode).has_value());
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
  FakeBackend backend_;
  config::Config config_;
};

TEST_F(DoctorTest, FindsNothingOnAnEmptyNode) {
  node_.find_backend = [](const std::string&) -> Result<SandboxBackend*> {
    return Fail(Code::kNotFound, "there is none");
  };
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
  for (const char* const program : {"/libexec/gantryd", "/libexec/gantry-keeper",
                                    "/usr/bin/containerd-shim-gantry-v1", "/usr/bin/containerd"}) {
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

TEST_F(DoctorTest, IgnoresAProgramThatIsNotExecutable) {
  File("/usr/bin/containerd-shim-gantry-v1", "");
  EXPECT_EQ(Find("gantry", "containerd-shim-gantry-v1").level, "missing");
  Program("/usr/bin/containerd-shim-gantry-v1");
  EXPECT_EQ(Find("gantry", "containerd-shim-gantry-v1").level, "ok");
}

TEST_F(DoctorTest, SaysWhyABackendCannotBeUsed) {
  config_.backends["mine"];
  node_.find_backend = [](const std::string& name) -> Result<SandboxBackend*> {
    return Fail(Code::kNotFound, "load plugin '/x/{}.so': no such file", name);
  };
  EXPECT_EQ(Find("mine", "plugin"),
            (Finding{"mine", "missing", "plugin", "load plugin '/x/mine.so': no such file"}));
}

TEST_F(DoctorTest, NamesTheBackendsThatWereNotBuilt) {
  node_.left_out = {"wasm"};
  EXPECT_EQ(Find("wasm", "plugin"),
            (Finding{"wasm", "optional", "plugin",
                     "this gantry was built without it (-DGANTRY_WASM=OFF): build and install one "
                     "with it"}));
  config_.backends["wasm"];
  node_.find_backend = [](const std::string& name) -> Result<SandboxBackend*> {
    return Fail(Code::kNotFound, "load plugin '/x/{}.so': no such file", name);
  };
  const Finding configured = Find("wasm", "plugin");
  EXPECT_EQ(configured.level, "missing");
  EXPECT_THAT(configured.detail, HasSubstr("-DGANTRY_WASM=OFF"));
  EXPECT_THAT(Find("runc", "plugin").detail, HasSubstr("no such file"));
}

TEST_F(DoctorTest, AsksABackendForItsNeeds) {
  backend_.needs = {{"a tool", true, false, "/usr/bin/tool"},
                    {"a device", false, false, "modprobe device"},
                    {"another tool, for checkpoints", false, true, "apt install another"}};
  EXPECT_EQ(Find("runc", "plugin").level, "ok");
  EXPECT_EQ(Find("runc", "a tool"), (Finding{"runc", "ok", "a tool", "/usr/bin/tool"}));
  EXPECT_EQ(Find("runc", "a device"), (Finding{"runc", "missing", "a device", "modprobe device"}));
  EXPECT_EQ(Find("runc", "another tool, for checkpoints").level, "optional");
}

TEST_F(DoctorTest, ShowsWhereABackendRefusesAnOption) {
  const auto config = config::Parse(
      "handlers:\n  fast:\n    backend: runc\n    options:\n      Speed: 5\n", "/g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  config_ = *config;
  backend_.refused = R"({"Speed":5})";
  EXPECT_EQ(Find("runc", "handler 'fast'"),
            (Finding{"runc", "missing", "handler 'fast'",
                     "/g.yaml:5: handler 'fast': check option 'Speed': no such key"}));
  EXPECT_EQ(Find("runc", "handler 'runc'").level, "ok");
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
