// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/program/guest_program.h"

#include <gantry_wasm_engine.h>

#include <cstdio>
#include <string>
#include <string_view>

#include <gantry/toolkit/init/gated_program.h>

#include "plugins/wasm/program/words.h"

extern char** environ;

namespace gantry::wasm {

int RunGuestProgram(int argc, char** argv, const GuestEngine& engine) {
  if (argc == 2 && std::string_view(argv[1]) == "describe") {
    return std::puts(::gantry_wasm_engine()) < 0 ? 1 : 0;
  }
  Words words;
  Guest guest(words, engine);
  return init::RunGatedProgram(
      argc, argv, environ,
      {.name = engine.program,
       .usage = kUsage,
       .take_word = [&words](const std::string& name,
                             const std::string& value) { return TakeWord(name, value, words); },
       .program = &guest});
}

}  // namespace gantry::wasm
