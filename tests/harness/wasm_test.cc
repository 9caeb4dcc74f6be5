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
  Words all = WithGuests({"--rm"});
  all.insert(all.end(), flags.begin(), flags.end());
  Program program = StartCtr(node(), RunWords(all, id, words), {});
  EXPECT_TRUE(line.empty() || program.ReadUntil(line)) << program.err();
  return program;
}

}  // namespace gantry::e2e
