// SPDX-License-Identifier: Apache-2.0
//
// tools/lib/rust.sh, with a compiler that only says its version and a cargo that only makes
// a file: what is built again, what is kept, and what is said of what is missing.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include "core/os/fs.h"
#include "tests/harness/program.h"

namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class Rust : public ::testing::Test {
 protected:
  Rust() : dir_(*gantry::os::TempDir::Create()) {
    Write("crates/Cargo.toml", "rust-version = \"1.95\"\n");
    Write("crates/src/lib.rs", "// one\n");
    SayVersion("1.96.0");
    WriteProgram("cargo", "[ \"$1\" = build ] || exit 0\necho built >>'" + Path("builds") + "'\n");
  }

  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
  }

  void WriteProgram(const std::string& name, const std::string& script) const {
    Write(name, "#!/bin/sh\n" + script);
    fs::permissions(Path(name), fs::perms::owner_all);
  }

  void SayVersion(const std::string& version) const {
    WriteProgram("rustc",
                 "echo 'rustc " + version + " (of a test)'\n[ $# -eq 1 ] || echo 'host: here'\n");
  }

  gantry::e2e::Output RunScript(const std::string& script) const {
    gantry::e2e::Program::Options options;
    options.env = {{"GANTRY_CACHE", Path("cache")},
                   {"GANTRY_CARGO", Path("cargo")},
                   {"GANTRY_RUSTC", Path("rustc")},
                   {"CRATES", Path("crates")}};
    gantry::e2e::Program bash(
        {"bash", "-c", "set -euo pipefail\n. '" GANTRY_SOURCE_DIR "/tools/lib/rust.sh'\n" + script},
        options);
    return bash.Finish(gantry::e2e::kLong);
  }

  /// What the crates make is their source.
  void Provide(const std::string& output) const {
    const gantry::e2e::Output done = RunScript(
        "build_files() { cargo_build \"$1\" \"$2\" some 2 ''; cp \"$1/src/lib.rs\" \"$3/lib\"; }\n"
        "rust_provide some \"$CRATES\" '" +
        Path(output) + "' lib\n");
    EXPECT_EQ(done.status, 0) << done.out << done.err;
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  /// Names of sixteen digits in the cache.
  size_t Kept() const {
    size_t kept = 0;
    for (const auto& each : fs::directory_iterator(Path("cache/some"))) {
      kept += each.path().filename().string().size() == 16 ? 1 : 0;
    }
    return kept;
  }

  gantry::os::TempDir dir_;
};

TEST_F(Rust, WhatIsTheSameIsBuiltOnce) {
  Provide("first");
  Provide("second");
  EXPECT_EQ(Read("first/lib"), "// one\n");
  EXPECT_EQ(Read("second/lib"), "// one\n");
  EXPECT_EQ(Read("builds"), "built\n");
}

TEST_F(Rust, AnotherSourceOrCompilerIsBuiltAgain) {
  Provide("out");
  Write("crates/src/lib.rs", "// two\n");
  Provide("out");
  EXPECT_EQ(Read("out/lib"), "// two\n");
  EXPECT_EQ(Read("builds"), "built\nbuilt\n");
  SayVersion("1.97.0");
  Provide("out");
  EXPECT_EQ(Read("builds"), "built\nbuilt\nbuilt\n");
}

TEST_F(Rust, TheNewestThreeAreKept) {
  for (const std::string text : {"1", "2", "3", "4", "5"}) {
    Write("crates/src/lib.rs", text);
    Provide("out");
  }
  EXPECT_EQ(Kept(), 3u);
  EXPECT_EQ(Read("out/lib"), "5");
}

TEST_F(Rust, ABuildThatFailsLeavesNothingToBeTaken) {
  WriteProgram("cargo", "[ \"$1\" != build ]\n");
  const gantry::e2e::Output done = RunScript(
      "build_files() { cargo_build \"$1\" \"$2\" some 2 ''; }\n"
      "rust_provide some \"$CRATES\" '" +
      Path("out") + "' lib\n");
  EXPECT_NE(done.status, 0);
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(Rust, AnOldCompilerAndNoneAreSaid) {
  EXPECT_EQ(RunScript("rust_check \"$CRATES\"").status, 0);
  SayVersion("1.85.1");
  const gantry::e2e::Output old = RunScript("rust_check \"$CRATES\"");
  EXPECT_EQ(old.status, 1);
  EXPECT_THAT(old.out, HasSubstr("1.85.1, and 1.95 is the oldest"));
  fs::remove(Path("rustc"));
  const gantry::e2e::Output none = RunScript("rust_check \"$CRATES\"");
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.out, HasSubstr(Path("rustc")));
}

}  // namespace
