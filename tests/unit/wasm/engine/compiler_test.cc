// SPDX-License-Identifier: Apache-2.0
// What the compiler takes, and what it says of what it does not.
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_compiler.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::string_literals;

struct Compiled {
  int error = -1;
  uint32_t kind = 99;
  std::string why;
  std::string artifact;
};

Compiled Compile(const std::string& bytes, int output) {
  Compiled compiled;
  std::string why(1024, '\0');
  compiled.error = gantry_wasm_compile(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                       output, &compiled.kind, why.data(), why.size());
  compiled.why = why.c_str();
  return compiled;
}

Compiled Compile(const std::string& bytes) {
  const int file = memfd_create("artifact", MFD_CLOEXEC);
  Compiled compiled = Compile(bytes, file);
  compiled.artifact.resize(static_cast<size_t>(lseek(file, 0, SEEK_END)));
  EXPECT_EQ(pread(file, compiled.artifact.data(), compiled.artifact.size(), 0),
            static_cast<ssize_t>(compiled.artifact.size()));
  close(file);
  return compiled;
}

std::string GuestBytes(const std::string& name) {
  std::ifstream file(std::string(GANTRY_TEST_GUESTS) + "/" + name + ".wasm", std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

void ExpectInvalid(const std::string& bytes, const std::string& why) {
  const Compiled compiled = Compile(bytes);
  EXPECT_EQ(compiled.error, GANTRY_WASM_INVALID);
  EXPECT_THAT(compiled.why, HasSubstr(why));
  EXPECT_EQ(compiled.artifact, "");
}

TEST(Compiler, MakesAnArtifactOfAModule) {
  const Compiled compiled = Compile(GuestBytes("exit"));
  EXPECT_EQ(compiled.error, GANTRY_WASM_OK) << compiled.why;
  EXPECT_EQ(compiled.kind, static_cast<uint32_t>(GANTRY_WASM_MODULE));
  EXPECT_THAT(compiled.artifact, StartsWith("\x7f"
                                            "ELF"));
}

TEST(Compiler, MakesTheSameOfTheSame) {
  EXPECT_EQ(Compile(GuestBytes("tool")).artifact, Compile(GuestBytes("tool")).artifact);
}

TEST(Compiler, TakesNothingElse) {
  ExpectInvalid("", "does not begin");
  ExpectInvalid("\0as"s, "does not begin");
  ExpectInvalid("(module)", "does not begin");
  ExpectInvalid(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0"s,
      "does not begin");
  ExpectInvalid("\0asm\2\0\0\0"s, "version 02 00 00 00");
}

// An artifact is machine code: of an image it is never taken for one.
TEST(Compiler, TakesNoArtifact) {
  ExpectInvalid(Compile(GuestBytes("exit")).artifact, "does not begin");
}

TEST(Compiler, SaysWhereAModuleIsNotValid) {
  const std::string module = GuestBytes("tool");
  for (const size_t size : {size_t{9}, module.size() / 3, module.size() - 1}) {
    const Compiled compiled = Compile(module.substr(0, size));
    EXPECT_EQ(compiled.error, GANTRY_WASM_INVALID) << size;
    EXPECT_THAT(compiled.why, AllOf(HasSubstr("it is not valid"), HasSubstr("offset"))) << size;
  }
  // A section that is said to be of 4 GB, and a number that never ends.
  ExpectInvalid("\0asm\1\0\0\0\1\xff\xff\xff\xff\x0f"s, "it is not valid");
  ExpectInvalid("\0asm\1\0\0\0\1\xff\xff\xff\xff\xff\xff\xff"s, "it is not valid");
}

TEST(Compiler, TakesNoComponentThatCannotBeRun) {
  ExpectInvalid("\0asm\x0d\0\1\0"s, "neither wasi:cli/run nor wasi:http/incoming-handler");
  ExpectInvalid("\0asm\x0d\0\1\0\1\xff"s, "it is not valid");
}

TEST(Compiler, SaysThatTheArtifactCannotBeWritten) {
  const Compiled compiled = Compile(GuestBytes("exit"), -1);
  EXPECT_EQ(compiled.error, GANTRY_WASM_SYSTEM);
  EXPECT_THAT(compiled.why, HasSubstr("cannot be written"));
}

TEST(Compiler, SaysWhatItsArtifactsNeed) {
  const std::string line = gantry_wasm_compiler();
  EXPECT_THAT(line, AllOf(StartsWith("wasmtime-48.0.8/1/"), Not(HasSubstr(" "))));
  EXPECT_EQ(line, gantry_wasm_compiler());
}

}  // namespace
}  // namespace gantry::wasm
