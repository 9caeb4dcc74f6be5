// SPDX-License-Identifier: Apache-2.0
#include "core/backend/backends.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/backend.h>

#include "core/config/config.h"
#include "core/os/fs.h"

namespace gantry::backend {
namespace {

using ::testing::HasSubstr;

class BackendsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_.path() + "/plugins");
    Install("good");
  }

  /// As an installation does it: what is loaded stays as it is.
  void Install(const std::string& plugin) {
    const std::string copy = dir_.path() + "/copy";
    std::filesystem::copy_file(std::string(TEST_PLUGIN_DIR) + "/" + plugin + ".so", copy);
    chmod(copy.c_str(), 0755);
    std::filesystem::rename(copy, file_);
  }

  Backends Made(const std::string& probe = TEST_PROBE_PROGRAM, Mark mark = Mark::kLeft) {
    return Backends(config_, dir_.path(), dir_.path() + "/run", probe, mark);
  }

  os::TempDir dir_ = os::TempDir::Create().value();
  std::string file_ = dir_.path() + "/plugins/libgantry_test.so";
  config::Config config_ = config::Defaults();
};

TEST_F(BackendsTest, FindsABackendBesideTheEngine) {
  Backends backends = Made();
  const auto backend = backends.Find("test");
  ASSERT_TRUE(backend.has_value()) << backend.error().message;
  EXPECT_EQ(*backends.Find("test"), *backend);
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_EQ(backends.States()[0].version, "1.2.3");
  EXPECT_EQ(backends.States()[0].path, file_);
}

TEST_F(BackendsTest, RemembersWhatWasRefusedUntilItIsTaken) {
  std::filesystem::remove(file_);
  Backends backends = Made();
  EXPECT_EQ(backends.Find("test").error().code, Code::kNotFound);
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_THAT(backends.States()[0].error, HasSubstr("install the plugin"));
  Install("good");
  EXPECT_TRUE(backends.Find("test").has_value());
  ASSERT_EQ(backends.States().size(), 1u);
  EXPECT_EQ(backends.States()[0].error, "");
}

TEST_F(BackendsTest, ProbesAFileOnce) {
  ASSERT_TRUE(Made().Find("test").has_value());
  EXPECT_TRUE(Made("/nonexistent/probe").Find("test").has_value());
  Install("throws");
  EXPECT_FALSE(Made("/nonexistent/probe").Find("test").has_value());
}

TEST_F(BackendsTest, LeaveNothingWhereTheyAreOnlyLookedAt) {
  EXPECT_TRUE(Made(TEST_PROBE_PROGRAM, Mark::kNotLeft).Find("test").has_value());
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/run"));
  ASSERT_TRUE(Made().Find("test").has_value());
  EXPECT_TRUE(Made("/nonexistent/probe", Mark::kNotLeft).Find("test").has_value());
}

TEST_F(BackendsTest, OutlivesAPluginThatCrashesWhenItIsLoaded) {
  Install("crashes");
  EXPECT_THAT(Made().Find("test").error().message, HasSubstr("it crashes when it is loaded"));
}

TEST_F(BackendsTest, AsksThoseInUseForTheirCounts) {
  Backends backends = Made();
  EXPECT_TRUE(backends.Counts().empty());
  ASSERT_TRUE(backends.Find("test").has_value());
  const auto counts = backends.Counts();
  ASSERT_EQ(counts.size(), 1U);
  ASSERT_EQ(counts.at("test").size(), 1U);
  EXPECT_EQ(counts.at("test")[0].handler, "fast");
  EXPECT_EQ(counts.at("test")[0].value, 3U);
  EXPECT_TRUE(backends.Counts().empty()) << "one that throws counts nothing";
  backends.Leave();
}

TEST_F(BackendsTest, SaysWhereAnOptionIsRefused) {
  const auto config =
      config::Parse("handlers:\n  x:\n    backend: test\n    options: {Speed: 5}\n", "g.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  Backends backends = Made();
  const auto backend = backends.Find("test");
  ASSERT_TRUE(backend.has_value()) << backend.error().message;
  const Status checked = CheckOptions(*config, "x", *config->FindHandler("x"), **backend);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Code::kInvalidArgument);
  EXPECT_EQ(checked.error().message, "g.yaml:4: handler 'x': check option 'Speed': no such key");
}

/// Counts what reaches it.
class AskedBackend final : public SandboxBackend {
 public:
  BackendInfo Describe() override { return {}; }

  Status CheckOptions(const std::string& options_json) override {
    ++checked;
    return options_json.contains("good")
               ? Status()
               : Fail(code, "check option 'Speed': not with {}", options_json);
  }

  Result<std::unique_ptr<Sandbox>> CreateSandbox(const SandboxRequest&, SandboxContext&) override {
    ++created;
    return Fail(Code::kUnavailable, "as far as this");
  }

  Result<std::unique_ptr<Sandbox>> RecoverSandbox(const SandboxRequest&, SandboxContext&,
                                                  const std::string&) override {
    return Fail(Code::kUnavailable, "recovered");
  }

  Code code = Code::kInvalidArgument;
  int checked = 0;
  int created = 0;
};

class CheckedBackendTest : public testing::Test {
 protected:
  /// Its backend is not asked for the context.
  Status Create(const std::string& options_json) {
    SandboxRequest request;
    request.options_json = options_json;
    alignas(16) static char nobody[16];
    auto made = backend_.CreateSandbox(request, reinterpret_cast<SandboxContext&>(nobody));
    return made ? Status() : std::unexpected(std::move(made).error());
  }

  AskedBackend good_;
  CheckedBackend backend_{"asked", good_};
};

TEST_F(CheckedBackendTest, MakesNoSandboxForAHandlerThatItsBackendRefused) {
  backend_.AddHandler(R"({"a":1,"b":2})", Fail(Code::kInvalidArgument, "g.yaml:4: no such key"));
  const Status made = Create(R"({ "b": 2, "a": 1 })");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  EXPECT_EQ(made.error().message, "g.yaml:4: no such key");
  EXPECT_EQ(good_.created, 0);
  EXPECT_EQ(good_.checked, 0);
}

TEST_F(CheckedBackendTest, AsksForOptionsThatComeWithARequestOnce) {
  backend_.AddHandler("{}", {});
  EXPECT_EQ(Create("{}").error().message, "as far as this");
  EXPECT_EQ(good_.checked, 0) << "it was asked when it was loaded";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Create(R"({"good":1})").error().message, "as far as this");
  }
  EXPECT_EQ(good_.checked, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Create(R"({"bad":1})").error().message, HasSubstr("not with"));
  }
  EXPECT_EQ(good_.checked, 3);
  EXPECT_EQ(good_.created, 4);
}

TEST_F(CheckedBackendTest, AsksAgainWhatTheNodeWasAskedForInVain) {
  backend_.AddHandler(R"({"good":1})", Fail(Code::kFailedPrecondition, "no such program"));
  EXPECT_EQ(Create(R"({"good":1})").error().message, "as far as this");
  EXPECT_EQ(good_.checked, 1);
}

}  // namespace
}  // namespace gantry::backend
