// SPDX-License-Identifier: Apache-2.0
#include "core/backend/plugin_host.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/plugin.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/guard.h"
#include "core/backend/plugin_file.h"
#include "core/os/fs.h"

namespace gantry::backend {
namespace {

using ::testing::HasSubstr;

class PluginHostTest : public ::testing::Test {
 protected:
  /// A copy that the test may treat as it likes.
  std::string Install(const std::string& plugin) {
    const std::string path = dir_.path() + "/" + plugin + ".so";
    std::filesystem::copy_file(std::string(TEST_PLUGIN_DIR) + "/" + plugin + ".so", path);
    chmod(path.c_str(), 0755);
    return path;
  }

  std::string Path(const std::string& plugin) const { return dir_.path() + "/" + plugin + ".so"; }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0644);
    return path;
  }

  void ExpectRefused(const std::string& path, Code code, const std::string& text) {
    const auto loaded = PluginHost::Load(path, "test", "{}");
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
    EXPECT_THAT(loaded.error().message, HasSubstr(text));
  }

  os::TempDir dir_ = os::TempDir::Create().value();
};

TEST_F(PluginHostTest, LoadsAGoodPlugin) {
  const auto loaded = PluginHost::Load(Install("good"), "test", "{}");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->name, "test");
  EXPECT_EQ(loaded->version, "1.2.3");
  EXPECT_EQ(loaded->backend->Describe().version, "1.2.3");
}

TEST_F(PluginHostTest, PassesTheFactorysErrorOn) {
  const auto loaded = PluginHost::Load(Install("good"), "test", R"({"x":1})");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Code::kInvalidArgument);
  EXPECT_EQ(loaded.error().message, "make backend 'test': option 'x': unknown");
}

TEST_F(PluginHostTest, EndsTheFactorysException) {
  ExpectRefused(Install("throws"), Code::kInternal, "backend 'test' threw: out of luck");
}

TEST_F(PluginHostTest, RefusesAFactoryThatGivesNothing) {
  ExpectRefused(Install("null"), Code::kInternal, "gave nothing");
}

TEST_F(PluginHostTest, RefusesAFileWithoutADescriptor) {
  ExpectRefused(Install("no_symbol"), Code::kFailedPrecondition, "exports no 'gantry_plugin'");
}

TEST_F(PluginHostTest, RefusesADescriptorThatIsNone) {
  ExpectRefused(Install("magic"), Code::kFailedPrecondition, "not a plugin descriptor");
}

TEST_F(PluginHostTest, RefusesAnotherInterfaceVersion) {
  ExpectRefused(Install("version"), Code::kFailedPrecondition, "install a newer gantry");
}

TEST_F(PluginHostTest, RefusesTheInterfaceVersionBefore) {
  const std::string why = Format(
      "made for interface version {}, this gantry has {}: build the plugin against this "
      "gantry's headers",
      kInterfaceVersion - 1, kInterfaceVersion);
  ExpectRefused(Install("older"), Code::kFailedPrecondition, why);
}

TEST_F(PluginHostTest, RefusesAnotherDescriptorSize) {
  ExpectRefused(Install("size"), Code::kFailedPrecondition, "descriptor has 8 bytes");
}

TEST_F(PluginHostTest, RefusesAnotherFingerprint) {
  ExpectRefused(Install("fingerprint"), Code::kFailedPrecondition, "another-compiler");
}

TEST_F(PluginHostTest, RefusesADescriptorWithoutAFactory) {
  ExpectRefused(Install("no_factory"), Code::kFailedPrecondition, "no factory");
}

TEST_F(PluginHostTest, NamesTheSymbolThatIsMissing) {
  ExpectRefused(Install("unresolved"), Code::kFailedPrecondition,
                "gantry_test_nobody_defines_this");
}

TEST_F(PluginHostTest, RefusesAnotherName) {
  const auto loaded = PluginHost::Load(Install("good"), "runc", "{}");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().message, HasSubstr("is the backend 'test', not 'runc'"));
}

TEST_F(PluginHostTest, RefusesAFileThatOthersMayWrite) {
  const std::string path = Install("good");
  chmod(path.c_str(), 0775);
  ExpectRefused(path, Code::kPermissionDenied, "chmod go-w");
}

TEST_F(PluginHostTest, RefusesADirectoryThatOthersMayWrite) {
  const std::string path = Install("good");
  chmod(dir_.path().c_str(), 0777);
  ExpectRefused(path, Code::kPermissionDenied, "directory");
}

TEST_F(PluginHostTest, RefusesAFileOfAnotherUser) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root to give a file away";
  }
  const std::string path = Install("good");
  ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
  ExpectRefused(path, Code::kPermissionDenied, "uid 12345");
}

TEST_F(PluginHostTest, RefusesALinkIntoADirectoryThatOthersMayWrite) {
  const std::string folder = dir_.path() + "/others";
  std::filesystem::create_directory(folder);
  std::filesystem::rename(Install("good"), folder + "/good.so");
  std::filesystem::create_symlink(folder + "/good.so", Path("good"));
  EXPECT_TRUE(PluginHost::Load(Path("good"), "test", "{}"));
  chmod(folder.c_str(), 0777);
  ExpectRefused(Path("good"), Code::kPermissionDenied, "directory '" + folder + "'");
}

TEST_F(PluginHostTest, KnowsWhetherTheFileThatItHasLookedAtWasLoaded) {
  const UniqueFd looked_at = OpenPluginFile(Install("good")).value();
  void* const loaded = dlopen(Path("good").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const void* const there = dlsym(loaded, "gantry_plugin");
  EXPECT_TRUE(CheckLoaded(looked_at, there, Path("good")));
  std::filesystem::remove(Path("good"));
  const UniqueFd another = OpenPluginFile(Install("good")).value();
  EXPECT_EQ(CheckLoaded(another, there, Path("good")).error().code, Code::kAborted);
  EXPECT_EQ(CheckLoaded(another, nullptr, Path("good")).error().code, Code::kAborted);
}

TEST_F(PluginHostTest, RefusesAnotherFileByTheNameOfOneThatIsLoaded) {
  ASSERT_TRUE(PluginHost::Load(Install("good"), "test", "{}"));
  std::filesystem::remove(Path("good"));
  // It would get the one that is loaded, which is not that file.
  ExpectRefused(Install("good"), Code::kAborted, "another file was loaded than was looked at");
}

TEST_F(PluginHostTest, RefusesWhatIsNoSharedObject) {
  ExpectRefused("good.so", Code::kInvalidArgument, "absolute path");
  ExpectRefused(dir_.path() + "/absent.so", Code::kNotFound, "no such file");
  ExpectRefused(dir_.path(), Code::kInvalidArgument, "regular file");
  ExpectRefused(Write("text.so", "#!/bin/sh\n"), Code::kInvalidArgument, "not an ELF file");
}

TEST_F(PluginHostTest, RefusesAnotherMachine) {
  std::string file = ReadFile(Install("good"), size_t{64} << 20).value();
  std::string other = file;
  other[offsetof(Elf64_Ehdr, e_machine)] = '\x7f';
  ExpectRefused(Write("other.so", other), Code::kInvalidArgument, "built for another machine");
  file[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
  ExpectRefused(Write("program.so", file), Code::kInvalidArgument, "no shared object");
}

TEST_F(PluginHostTest, NamesTheLibraryThatIsMissing) {
  ExpectRefused(Install("needs"), Code::kFailedPrecondition, "libgantry_test_absent.so");
}

TEST_F(PluginHostTest, ProbeLoadCallsTheFactoryToo) {
  const auto good = PluginHost::ProbeLoad(TEST_PROBE_PROGRAM, Install("good"), "test", "{}");
  ASSERT_TRUE(good.has_value()) << good.error().message;
  EXPECT_EQ(*good, "test 1.2.3");
  const auto thrown = PluginHost::ProbeLoad(TEST_PROBE_PROGRAM, Install("throws"), "test", "{}");
  ASSERT_FALSE(thrown.has_value());
  EXPECT_EQ(thrown.error().code, Code::kInternal);
  EXPECT_EQ(thrown.error().message, PluginHost::Load(Path("throws"), "test", "{}").error().message);
}

/// What an author looks up: each refusal is in the documentation, word for word.
TEST_F(PluginHostTest, RefusalsAreDocumented) {
  const std::string page = ReadFile(TEST_DOCS "/writing-a-backend.md", size_t{1} << 20).value();
  for (const char* text : {"belongs to uid",
                           "others may write to",
                           "not an absolute path",
                           "no such file",
                           "not a regular file",
                           "another file was loaded than was looked at",
                           "not an ELF file",
                           "built for another machine",
                           "no shared object",
                           "it does not link",
                           "it exports no 'gantry_plugin'",
                           "is not a plugin descriptor",
                           "made for interface version",
                           "its descriptor has",
                           "built as",
                           "it is the backend",
                           "its descriptor has no factory",
                           "threw",
                           "gave nothing",
                           "it crashes when it is loaded"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST_F(PluginHostTest, ADefectivePluginLeavesTheOthersAlone) {
  ExpectRefused(Install("throws"), Code::kInternal, "threw");
  ExpectRefused(Install("unresolved"), Code::kFailedPrecondition, "link");
  EXPECT_TRUE(PluginHost::Load(Install("good"), "test", "{}").has_value());
}

TEST_F(PluginHostTest, ProbeNamesNameAndVersion) {
  const auto probed = PluginHost::Probe(TEST_PROBE_PROGRAM, Install("good"), "test");
  ASSERT_TRUE(probed.has_value()) << probed.error().message;
  EXPECT_EQ(*probed, "test 1.2.3");
}

TEST_F(PluginHostTest, ProbeSurvivesACrashAtLoad) {
  const auto probed = PluginHost::Probe(TEST_PROBE_PROGRAM, Install("crashes"), "test");
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(probed.error().message, HasSubstr("crashes when it is loaded (signal 6)"));
}

TEST_F(PluginHostTest, ProbePassesTheReasonOn) {
  const auto probed = PluginHost::Probe(TEST_PROBE_PROGRAM, Install("version"), "test");
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(probed.error().message, HasSubstr("interface version"));
}

TEST_F(PluginHostTest, ProbeThatHangsIsEnded) {
  const auto probed =
      PluginHost::Probe(TEST_PROBE_PROGRAM, Install("good"), "hang", std::chrono::milliseconds(50));
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, Code::kDeadlineExceeded);
}

TEST(GuardedCall, TurnsExceptionsIntoErrors) {
  const auto thrown =
      GuardedCall("wasm", []() -> Result<int> { throw std::runtime_error("broken"); });
  ASSERT_FALSE(thrown.has_value());
  EXPECT_EQ(thrown.error().code, Code::kInternal);
  EXPECT_EQ(thrown.error().message, "backend 'wasm' threw: broken");
  const auto odd = GuardedCall("wasm", []() -> Status { throw 42; });
  EXPECT_FALSE(odd.has_value());
  EXPECT_EQ(GuardedCall("wasm", []() -> Result<int> { return 3; }).value(), 3);
}

TEST(GuardedCall, RefusesWhatIsNoResult) {
  const auto nothing =
      GuardedCall("wasm", []() -> Result<std::unique_ptr<int>> { return nullptr; });
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, Code::kInternal);
  EXPECT_EQ(nothing.error().message, "backend 'wasm' reported success and gave nothing");
  for (const int code : {0, -1, 17, 4711}) {
    const auto odd = GuardedCall("wasm", [code]() -> Status {
      return std::unexpected(Error{static_cast<Code>(code), 0, "odd", {}});
    });
    ASSERT_FALSE(odd.has_value());
    EXPECT_EQ(odd.error().code, Code::kInternal);
    EXPECT_THAT(odd.error().message, HasSubstr("backend 'wasm'"));
  }
  const auto silent = GuardedCall(
      "wasm", []() -> Status { return std::unexpected(Error{Code::kNotFound, 0, "", {}}); });
  EXPECT_EQ(silent.error().code, Code::kNotFound);
  EXPECT_THAT(silent.error().message, HasSubstr("backend 'wasm'"));
}

}  // namespace
}  // namespace gantry::backend
