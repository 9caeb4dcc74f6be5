// SPDX-License-Identifier: Apache-2.0
//
// The real program with a stand-in for its compiler, confined as it is by the backend.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/wasm/cache/answer.h"
#include "plugins/wasm/compile/protocol.h"
#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "a compiler is started with root's rights, to lose them";
    }
  }

  Result<Compiler::Compiled> Compile(std::string_view module) {
    Compiler compiler(context_, ProgramAt(GANTRY_FAKE_COMPILE_ONE), limits_);
    return compiler.Compile(ModuleOf(module));
  }

  Error ErrorOf(std::string_view module) {
    const auto compiled = Compile(module);
    return compiled ? Error{} : compiled.error();
  }

  HookedContext context_;
  CompileLimits limits_;
};

TEST_F(CompilerTest, SaysWhatItIs) {
  Compiler compiler(context_, ProgramAt(GANTRY_FAKE_COMPILE_TWO), limits_);
  const auto line = compiler.Describe(std::chrono::minutes(1));
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, "fake-two");
}

TEST_F(CompilerTest, WritesWhatNobodyChangesAnyMore) {
  const auto compiled = Compile("proxy");
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_EQ(compiled->kind, Kind::kProxy);
  EXPECT_EQ(ContentOf(compiled->artifact), MadeOf("proxy"));
  EXPECT_EQ(compiled->bytes, MadeOf("proxy").size());
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  EXPECT_EQ(fcntl(compiled->artifact.get(), F_GET_SEALS) & kSeals, kSeals);
}

TEST_F(CompilerTest, RefusesWithItsOwnWords) {
  const Error error = ErrorOf("invalid");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.message, "compile the module: at byte 7:?\"odd\\\"");
}

/// The module has taken it over.
TEST_F(CompilerTest, ReachesNothing) {
  EXPECT_THAT(ErrorOf("reach file").message, HasSubstr("refused"));
  for (const char* what : {"reach socket", "reach process", "reach program", "reach memory"}) {
    const Error error = ErrorOf(what);
    EXPECT_EQ(error.code, Code::kInternal) << what;
    EXPECT_THAT(error.message, HasSubstr("crashed with signal 31")) << what;  // SIGSYS
  }
}

/// Also where who starts it has set no filter.
TEST_F(CompilerTest, ConfinesItself) {
  for (const char* what : {"reach socket", "reach process", "reach program", "reach memory"}) {
    SpawnRequest request;
    request.argv = {GANTRY_FAKE_COMPILE_ONE, "compile"};
    request.rlimits = {{RLIMIT_CORE, {0, 0}}};
    request.fds.emplace_back(std::move(ModuleOf(what).file), compile::kModule);
    request.fds.emplace_back(*CreateMemfd("artifact"), compile::kArtifact);
    request.fds.emplace_back(*CreateMemfd("answer"), compile::kAnswer);
    const auto process = context_.Spawn(std::move(request));
    ASSERT_TRUE(process) << process.error().message;
    const auto ended = (*process)->Wait(std::chrono::minutes(1));
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ(EndWords(*ended), "was killed by signal 31") << what;
  }
}

TEST_F(CompilerTest, IsNobodyNowhere) {
  std::string status;
  std::string score;
  ino_t network = 0;
  context_.on_spawned = [&](const std::string&, HostProcess& process) {
    const std::string proc = "/proc/" + std::to_string(process.pid().value);
    status = *ReadFile(proc + "/status", 1 << 16);
    score = *ReadFile(proc + "/oom_score_adj", 64);
    struct stat info = {};
    stat((proc + "/ns/net").c_str(), &info);
    network = info.st_ino;
    IgnoreError(process.Signal(SIGKILL), "it is waited for");
  };
  EXPECT_EQ(ErrorOf("silent").code, Code::kUnavailable);
  EXPECT_THAT(status,
              AllOf(HasSubstr("Uid:\t65535\t65535\t65535\t65535"),
                    HasSubstr("Gid:\t65535\t65535\t65535\t65535"),
                    HasSubstr("CapPrm:\t0000000000000000"), HasSubstr("CapBnd:\t0000000000000000"),
                    HasSubstr("NoNewPrivs:\t1"), HasSubstr("Seccomp:\t2")));
  EXPECT_EQ(score, "1000\n");
  struct stat own = {};
  stat("/proc/self/ns/net", &own);
  EXPECT_NE(network, own.st_ino);
}

TEST_F(CompilerTest, TakesNoMoreTimeThanItMay) {
  limits_.time = std::chrono::milliseconds(50);
  const Error error = ErrorOf("silent");
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("takes longer than 0.05 s"));
  EXPECT_EQ(context_.Alive(), 0U);
}

TEST_F(CompilerTest, TakesNoMoreMemoryThanItMay) {
  if (!kMemoryIsLimited) {
    GTEST_SKIP() << "the thread sanitizer leaves no room for a limit";
  }
  limits_.memory = uint64_t{40} << 20;
  const Error error = ErrorOf("memory");
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("more than 40 MiB of memory"));
}

TEST_F(CompilerTest, WritesNoMoreThanItMay) {
  limits_.output = uint64_t{2} << 20;
  const Error error = ErrorOf("much");
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.message, HasSubstr("more than 2 MiB of output"));
}

TEST_F(CompilerTest, IsNotBelieved) {
  for (const char* module : {"answer rubbish", "nothing", "crash"}) {
    EXPECT_EQ(ErrorOf(module).code, Code::kInternal) << module;
  }
  EXPECT_THAT(ErrorOf("answer {\"kind\":\"module\"}").message, HasSubstr("has written nothing"));
}

TEST_F(CompilerTest, SaysNothingOfAModuleWhenItIsKilledOrNotThere) {
  context_.on_spawned = [](const std::string&, HostProcess& process) {
    IgnoreError(process.Signal(SIGKILL), "it is waited for");
  };
  EXPECT_EQ(ErrorOf("silent").code, Code::kUnavailable);
  context_.on_spawn = [](const SpawnRequest&) -> Status {
    return Fail(Code::kResourceExhausted, "no process more");
  };
  const Error error = ErrorOf("module");
  EXPECT_EQ(error.code, Code::kUnavailable) << "the module has not been tried";
  EXPECT_THAT(error.message, HasSubstr("no process more"));
}

TEST_F(CompilerTest, RefusesAModuleThatCanChange) {
  const auto file = CreateSealableMemfd("module", MemfdUse::kRead);
  IgnoreError(WriteAt(file->get(), 0, "module"), "what it is does not matter");
  Compiler compiler(context_, ProgramAt(GANTRY_FAKE_COMPILE_ONE), limits_);
  const auto compiled = compiler.Compile({.file = *file->Duplicate(), .size = 6, .digest = {}});
  ASSERT_FALSE(compiled);
  EXPECT_THAT(compiled.error().message, HasSubstr("not in a sealed file"));
}

/// What has no tag an engine after this one does not find, and it would run on.
TEST_F(CompilerTest, IsFoundByTheNextEngine) {
  ASSERT_TRUE(Compile("module"));
  ASSERT_TRUE(Compile("module"));
  const auto tags = context_.Tags();
  ASSERT_EQ(tags.size(), 2U);
  EXPECT_THAT(tags, testing::Each(testing::StartsWith("compile-")));
  EXPECT_NE(tags[0], tags[1]) << "two may run at a time";
}

TEST_F(CompilerTest, StopsForTheEndOfTheEngine) {
  Compiler compiler(context_, ProgramAt(GANTRY_FAKE_COMPILE_ONE), limits_);
  context_.on_spawned = [&](const std::string&, HostProcess&) { compiler.Stop(); };
  EXPECT_EQ(compiler.Compile(ModuleOf("silent")).error().code, Code::kUnavailable);
  context_.on_spawned = nullptr;
  EXPECT_EQ(compiler.Compile(ModuleOf("silent")).error().code, Code::kUnavailable)
      << "nothing is started any more";
}

}  // namespace
}  // namespace gantry::wasm
