// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/wasm_test.h"

#include <utility>

namespace gantry::e2e {

void WasmTest::SetUp() {
  if (!settings().wasm()) {
    GTEST_SKIP() << "is about the wasm backend";
  }
  E2eTest::SetUp();
}

std::string WasmTest::Guest(const std::string& name) { return "/guests/" + name + ".wasm"; }

Words WasmTest::WithGuests(Words flags) {
  flags.insert(flags.end(),
               {"--mount", "type=bind,src=" + settings().guests + ",dst=/guests,options=rbind:ro"});
  return flags;
}

Words WasmTest::Tool(Words words) {
  words.insert(words.begin(), Guest("tool"));
  return words;
}

Output WasmTest::RunGuest(Words words, const Words& flags, std::optional<std::string_view> input) {
  words.front() = Guest(words.front());
  Words all = WithGuests({"--rm"});
  all.insert(all.end(), flags.begin(), flags.end());
  return RunContainer(all, Id(), words, input);
}

Program WasmTest::StartGuest(const std::string& id, Words words, const std::string& line,
                             const Words& flags) {
  words.front() = Guest(words.front());
  Program program = Start(id, words, flags, {});
  EXPECT_TRUE(line.empty() || program.ReadUntil(line)) << program.err();
  return program;
}

Program WasmTest::StartWithInput(Words words, const Words& flags) {
  words.front() = Guest(words.front());
  Program::Options options;
  options.input = true;
  Program program = Start(Id(), words, flags, options);
  EXPECT_TRUE(program.ReadUntil("arg " + words.front())) << program.err();
  return program;
}

Program WasmTest::Start(const std::string& id, const Words& words, const Words& flags,
                        const Program::Options& options) {
  Words all = WithGuests({"--rm"});
  all.insert(all.end(), flags.begin(), flags.end());
  return StartCtr(node(), RunWords(all, id, words), options);
}

void WasmTest::ExpectConfined(pid_t pid) {
  ASSERT_GT(pid, 0);
  const std::string process = "/proc/" + std::to_string(pid);
  EXPECT_EQ(ListFolder(process + "/task").size(), 1U);
  const std::string status = ReadText(process + "/status");
  for (const char* const line : {"CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line << "\n" << status;
  }
}

}  // namespace gantry::e2e
