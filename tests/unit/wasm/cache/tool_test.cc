// SPDX-License-Identifier: Apache-2.0
//
// gantryctl-wasm as gantryctl runs it, with the compiler that it carries.
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/testing/host_process.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/wasm/cache/fakes.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
using testing::Not;

class CacheToolTest : public CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    program_ = GANTRY_REAL_COMPILE;
  }

  /// Its exit code; what it says is in `said_`.
  uint32_t Run(const std::string& words) {
    const auto process =
        RunShell(Format("exec '{}' {} > '{}/said' 2>&1", GANTRY_CTL_WASM, words, dir_.path()));
    const auto ended = (*process)->Wait(std::chrono::minutes(5));
    said_ = ReadFile(dir_.path() + "/said", 1 << 16).value_or("");
    return ended ? ended->code() : ~0U;
  }

  uint32_t Compile(const std::string& words) {
    return Run(Format("compile --directory '{}' --address '{}/absent.sock' {}", options_.directory,
                      dir_.path(), words));
  }

  std::string FileOf(const std::string& name, std::string_view content) {
    const std::string path = dir_.path() + "/" + name;
    EXPECT_TRUE(WriteFile(path, content, 0644));
    return path;
  }

  nlohmann::json Listed() {
    EXPECT_EQ(Run(Format("cache --json --directory '{}'", options_.directory)), 0U) << said_;
    return ReadJson(said_);
  }

  std::string said_;
};

/// Exactly that which Create looks for.
TEST_F(CacheToolTest, CompilesAFileForTheContainersThatCome) {
  const std::string module = SmallModule();
  const std::string path = FileOf("app.wasm", module);
  ASSERT_EQ(Compile(path), 0U) << said_;
  EXPECT_THAT(said_, HasSubstr(path + ": module sha256:" + HexOf(Sha256Of(module))));
  const auto artifact = Get(module);
  ASSERT_TRUE(artifact) << artifact.error().message;
  EXPECT_EQ(Compiles(), 0U);
  EXPECT_EQ(Count("cache_disk_hits"), 1U);
  EXPECT_EQ(Compile(path), 0U) << said_;
  const auto all = Listed();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["module"], "sha256:" + HexOf(Sha256Of(module)));
}

TEST_F(CacheToolTest, SaysWhatCannotBeCompiledAndGoesOn) {
  const std::string good = FileOf("app.wasm", SmallModule());
  const std::string text = FileOf("text.wasm", "(module)");
  EXPECT_EQ(Compile(Format("{}/absent.wasm {} {} {}", dir_.path(), dir_.path(), text, good)), 1U);
  EXPECT_THAT(said_, HasSubstr("absent.wasm': ENOENT"));
  EXPECT_THAT(said_, HasSubstr("it is a directory"));
  EXPECT_THAT(said_, HasSubstr(text));
  EXPECT_THAT(said_, HasSubstr(good + ": module sha256:"));
  EXPECT_EQ(Listed().size(), 1U);
}

TEST_F(CacheToolTest, TakesNoLargerModuleThanItMay) {
  EXPECT_EQ(Compile("--max-module-bytes 20 " + FileOf("app.wasm", SmallModule())), 1U);
  EXPECT_THAT(said_, HasSubstr("a module may have 20"));
}

TEST_F(CacheToolTest, SaysWhatItCouldNotKeep) {
  const std::string path = FileOf("app.wasm", SmallModule());
  FileOf("wasm", "no directory");
  EXPECT_EQ(Compile(path), 1U);
  EXPECT_THAT(said_, HasSubstr("keep the compiled module"));
}

TEST_F(CacheToolTest, AsksContainerdForAnImage) {
  EXPECT_EQ(Compile("docker.io/library/app:1"), 1U);
  EXPECT_THAT(said_, HasSubstr("absent.sock"));
  EXPECT_EQ(Run(Format("clean --unused 0 --directory '{}' --address '{}/absent.sock'",
                       options_.directory, dir_.path())),
            1U);
  EXPECT_THAT(said_, HasSubstr("cannot be reached"));
}

/// With limits of an hour ago it failed; these are others.
TEST_F(CacheToolTest, TriesAgainWhatTookTooMuch) {
  const std::string module = SmallModule();
  options_.limits.output = 1;
  options_.limits.output_per_byte = 0;
  ASSERT_EQ(Get(module).error().code, Code::kResourceExhausted);
  Restart();
  EXPECT_EQ(Compile(FileOf("app.wasm", module)), 0U) << said_;
  EXPECT_TRUE(Get(module));
}

TEST_F(CacheToolTest, SaysHowItIsCalled) {
  for (const char* words : {"", "cash", "compile", "compile --seconds 0 x", "compile --seconds",
                            "compile --unused 3 x", "compile --memory much x", "clean what",
                            "cache --unused 3", "clean --unused x", "cache --directory relative"}) {
    EXPECT_EQ(Run(words), 2U) << words;
    EXPECT_THAT(said_, HasSubstr("usage: gantryctl wasm cache")) << words;
  }
  EXPECT_EQ(Run("compile --help"), 0U);
  EXPECT_THAT(said_, Not(HasSubstr("gantryctl wasm: ")));
}

}  // namespace
}  // namespace gantry::wasm
