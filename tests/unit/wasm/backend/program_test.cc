// SPDX-License-Identifier: Apache-2.0
//
// What is a WebAssembly program, what is one for the kernel, and what is neither.
#include "plugins/wasm/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/backend/root.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

class WasmProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    process_.cwd = "/srv";
    process_.env = {"PATH=/usr/bin:/bin"};
    root_.Write("app.wasm", SmallModule());
    root_.Write("srv/near.wasm", SmallModule());
    root_.Write("bin/tool", SmallModule());
    root_.Write("component", ComponentHeader());
    root_.Write("bin/sh", "\177ELF\2\1\1", 0755);
    root_.Write("bin/script", "#!/bin/sh\n", 0755);
    root_.Write("plain", "\177ELF\2\1\1", 0644);
    root_.Write("text", "hello\n", 0755);
  }

  Result<Program> Find(const std::string& name, Claim claim = Claim::kNone) {
    process_.args = {name};
    GANTRY_TRY(const RootView view, RootView::Open(root_.rootfs(), root_.bundle(), mounts_));
    return FindProgram(view, process_, claim);
  }

  /// Its path and, where one is named, its function; "native".
  std::string Found(const std::string& name, Claim claim = Claim::kNone) {
    const auto program = Find(name, claim);
    if (!program) {
      return program.error().message;
    }
    return !program->file           ? "native"
           : program->entry.empty() ? program->path
                                    : program->path + " " + program->entry;
  }

  void Bind(const std::string& source, const std::string& destination) {
    oci::SpecMount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = destination;
    mount.options = {"rbind", "ro"};
    mounts_.push_back(mount);
  }

  TestRoot root_;
  oci::ProcessSpec process_;
  std::vector<oci::SpecMount> mounts_;
};

TEST_F(WasmProgramTest, IsToldByItsFirstBytes) {
  EXPECT_EQ(Found("/app.wasm"), "/app.wasm");
  EXPECT_EQ(Found("/bin/sh"), "native");
  EXPECT_EQ(Found("/bin/script"), "native");
  EXPECT_FALSE(Find("/app.wasm")->component);
  EXPECT_TRUE(Find("/component")->component);
}

TEST_F(WasmProgramTest, IsLookedUpInItsFolderAndInPath) {
  EXPECT_EQ(Found("near.wasm"), "/srv/near.wasm");
  EXPECT_EQ(Found("./near.wasm"), "/srv/near.wasm");
  EXPECT_EQ(Found("../app.wasm"), "/app.wasm");
  EXPECT_EQ(Found("tool"), "/bin/tool");
  EXPECT_EQ(Found("sh"), "native");
  root_.Write("srv/sh", "no program\n");
  EXPECT_EQ(Found("sh"), "native") << "the kernel's are found in PATH alone";
  EXPECT_EQ(Found("nowhere"), "native") << "who executes it says so";
}

TEST_F(WasmProgramTest, MayNameAFunction) {
  EXPECT_EQ(Found("/app.wasm#run"), "/app.wasm run");
  EXPECT_EQ(Found("near.wasm#a#b"), "native") << "no such file";
  root_.Write("odd#name", SmallModule());
  EXPECT_EQ(Found("/odd#name"), "/odd#name") << "the whole name is looked for first";
  EXPECT_EQ(Found("/odd#name#run"), "/odd#name run");
  EXPECT_EQ(Find("/app.wasm#").error().code, Code::kInvalidArgument);
  const auto component = Find("/component#run");
  EXPECT_EQ(component.error().code, Code::kInvalidArgument);
  EXPECT_THAT(component.error().message, HasSubstr("'/component'"));
}

TEST_F(WasmProgramTest, WhatIsNeitherIsNamed) {
  root_.Write("empty", "", 0755);
  root_.Write("zeros", std::string(5000, '\0'), 0755);
  root_.Write("text.wat", "(module)", 0755);
  root_.Write("app.cwasm", "\177ELF\2\1\1\xc8" + std::string(8, '\0'), 0755);

  struct Bad {
    const char* path;
    const char* looks;
  };

  for (const Bad& one : {Bad{"/text", "text"}, Bad{"/empty", "empty"}, Bad{"/zeros", "zeros"},
                         Bad{"/text.wat", "WebAssembly text"},
                         Bad{"/app.cwasm", "a module that Wasmtime has compiled (.cwasm)"}}) {
    const auto program = Find(one.path);
    ASSERT_FALSE(program) << one.path;
    EXPECT_EQ(program.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(program.error().message, HasSubstr(one.path));
    EXPECT_THAT(program.error().message, HasSubstr(one.looks));
    EXPECT_THAT(program.error().message, HasSubstr("accepted are a WebAssembly module"));
  }
}

TEST_F(WasmProgramTest, WhatIsNoFileIsNamed) {
  std::filesystem::create_directories(root_.rootfs() + "/dir");
  ASSERT_EQ(mkfifo((root_.rootfs() + "/fifo").c_str(), 0600), 0);
  for (const char* path : {"/dir", "/fifo"}) {
    const auto program = Find(path);
    ASSERT_FALSE(program);
    EXPECT_EQ(program.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(program.error().message, HasSubstr(path));
  }
}

TEST_F(WasmProgramTest, WhatNobodyMayExecuteIsNamed) {
  const auto program = Find("/plain");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, Code::kPermissionDenied);
  EXPECT_THAT(program.error().message, HasSubstr("'/plain'"));
  EXPECT_THAT(program.error().message, HasSubstr("mode 0644"));
}

TEST_F(WasmProgramTest, AnAnnotationWantsAModule) {
  EXPECT_EQ(Found("/app.wasm", Claim::kWasm), "/app.wasm");
  const auto native = Find("/bin/sh", Claim::kWasm);
  EXPECT_EQ(native.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(native.error().message, HasSubstr("an ELF program"));
  const auto missing = Find("/none.wasm", Claim::kWasm);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("/none.wasm"));
  EXPECT_EQ(Find("/none.wasm#run", Claim::kWasm).error().code, Code::kNotFound);
  EXPECT_EQ(Find("/bin/sh#run", Claim::kWasm).error().code, Code::kFailedPrecondition);
}

TEST_F(WasmProgramTest, ASmartOneWantsOneByItsName) {
  EXPECT_EQ(Found("/app.wasm", Claim::kSmart), "/app.wasm");
  EXPECT_EQ(Found("/app.wasm#run", Claim::kSmart), "/app.wasm run");
  EXPECT_EQ(Found("/bin/tool", Claim::kSmart), "native");
  EXPECT_EQ(Found("/bin/sh", Claim::kSmart), "native");
  const auto text = Find("/app.wat", Claim::kSmart);
  EXPECT_EQ(text.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(text.error().message, HasSubstr("'/app.wat'"));
}

TEST_F(WasmProgramTest, OfASandboxIsNone) {
  EXPECT_EQ(Found("/app.wasm", Claim::kNative), "native");
}

TEST_F(WasmProgramTest, MayBeInAVolume) {
  const TestRoot volume;
  volume.Write("job.wasm", SmallModule());
  Bind(volume.rootfs(), "/jobs");
  EXPECT_EQ(Found("/jobs/job.wasm"), "/jobs/job.wasm");
  EXPECT_EQ(Found("/jobs/none"), "native");
  EXPECT_EQ(Find("/jobs/none.wasm", Claim::kWasm).error().code, Code::kNotFound);
  root_.Write("jobs/hidden.wasm", SmallModule());
  EXPECT_EQ(Found("/jobs/hidden.wasm"), "native") << "the volume covers it";
  volume.Write("outside.wasm", "text");
  std::filesystem::create_symlink(root_.rootfs() + "/app.wasm", volume.rootfs() + "/link.wasm");
  EXPECT_EQ(Found("/jobs/link.wasm"), "native") << "a link leads nowhere out of it";
}

TEST_F(WasmProgramTest, IsNotSeenInAFileSystemOfTheContainersOwn) {
  oci::SpecMount mount;
  mount.type = "tmpfs";
  mount.source = "tmpfs";
  mount.destination = "/srv";
  mounts_.push_back(mount);
  EXPECT_EQ(Found("/srv/near.wasm"), "native");
  EXPECT_EQ(Find("/srv/near.wasm", Claim::kWasm).error().code, Code::kNotFound);
}

TEST_F(WasmProgramTest, IsNotCoveredByAMountOfItsOwn) {
  const TestRoot volume;
  volume.Write("job.wasm", SmallModule());
  Bind(volume.rootfs() + "/job.wasm", "/app.wasm");
  const auto own = Find("/app.wasm");
  EXPECT_EQ(own.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(own.error().message, HasSubstr("a mount at '/app.wasm' covers it"));
  mounts_.clear();
  Bind(volume.rootfs(), "/");
  const auto root = Find("/job.wasm");
  EXPECT_EQ(root.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(root.error().message, HasSubstr("a mount at '/' covers it"));
}

TEST_F(WasmProgramTest, AProgramForTheKernelMayBeMountedByItself) {
  const TestRoot volume;
  volume.Write("init", "\177ELF\2\1\1", 0755);
  Bind(volume.rootfs() + "/init", "/sbin/docker-init");
  EXPECT_EQ(Found("/sbin/docker-init"), "native");
}

}  // namespace
}  // namespace gantry::wasm
