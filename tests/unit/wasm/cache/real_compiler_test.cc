// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm-compile as it is shipped: its library does with the system calls and the memory that
// it is left with.
#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/cache/fakes.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What a module of version 1 begins with; alone it is one that has nothing.
const std::string kEmpty("\0asm\1\0\0\0", 8);

class RealCompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "a compiler is started with root's rights, to lose them";
    }
  }

  HookedContext context_;
  Compiler compiler_{context_, ProgramAt(GANTRY_REAL_COMPILE), CompileLimits()};
};

TEST_F(RealCompilerTest, SaysWhatItIs) {
  const auto line = compiler_.Describe(std::chrono::minutes(1));
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_THAT(*line, StartsWith("wasmtime-"));
}

TEST_F(RealCompilerTest, MakesMachineCode) {
  // A type, a function of it, its export "_start" and its body: a loop that is left.
  const std::string module = kEmpty + std::string(
                                          "\1\4\1\x60\0\0"
                                          "\3\2\1\0"
                                          "\7\12\1\6_start\0\0"
                                          "\12\7\1\5\0\3\x40\x0b\x0b",
                                          6 + 4 + 12 + 9);
  const auto compiled = compiler_.Compile(ModuleOf(module));
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_EQ(compiled->kind, Kind::kModule);
  EXPECT_THAT(ContentOf(compiled->artifact), StartsWith("\x7f"
                                                        "ELF"));
}

/// The most that a module may have (module/sections.h).
TEST_F(RealCompilerTest, CompilesAHundredThousandFunctions) {
  if (!kMemoryIsLimited) {
    GTEST_SKIP() << "the thread sanitizer leaves no room for a limit";
  }
  constexpr uint32_t kMany = 100'000;
  std::string functions = Leb(kMany) + std::string(kMany, '\0');
  std::string bodies = Leb(kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    bodies += std::string("\2\0\x0b", 3);
  }
  const std::string module = CoreHeader() + SectionOf(1, {"\1\x60\0\0", 4}) +
                             SectionOf(3, functions) + SectionOf(7, {"\1\6_start\0\0", 10}) +
                             SectionOf(10, bodies);
  ModuleBytes bytes = ModuleOf(module);
  const auto small = compiler_.Compile(bytes);
  ASSERT_FALSE(small) << "each of them costs more than its bytes say";
  EXPECT_EQ(small.error().code, Code::kResourceExhausted);
  EXPECT_THAT(small.error().message, HasSubstr("of memory, which is the limit for its size"));
  bytes.functions = kMany;
  const auto compiled = compiler_.Compile(bytes);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_GT(compiled->bytes, kMany);
}

TEST_F(RealCompilerTest, RefusesWhatIsNotValid) {
  for (const std::string& module :
       {std::string("(module)"), kEmpty.substr(0, 7), kEmpty + "\1", kEmpty + "\1\4\1\x61\0\0"}) {
    const auto compiled = compiler_.Compile(ModuleOf(module));
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().code, Code::kInvalidArgument) << compiled.error().message;
    EXPECT_THAT(compiled.error().message, HasSubstr("compile the module: it"));
  }
}

}  // namespace
}  // namespace gantry::wasm
