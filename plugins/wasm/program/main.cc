// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm: makes the container of a config.json, or a process more in one that runs, and runs a
// WebAssembly guest in it, of which it is given the compiled artifact. It is called as gantry-init
// is (docs/gantry-init.md), with the words of words.h beside.
#include <gantry/toolkit/init/gated_program.h>

#include "plugins/wasm/program/guest.h"
#include "plugins/wasm/program/words.h"

extern char** environ;

int main(int argc, char** argv) {
  gantry::wasm::Words words;
  gantry::wasm::Guest guest(words);
  return gantry::init::RunGatedProgram(
      argc, argv, environ,
      {.name = "gantry-wasm",
       .usage = gantry::wasm::kUsage,
       .take_word =
           [&words](const std::string& name, const std::string& value) {
             return gantry::wasm::TakeWord(name, value, words);
           },
       .program = &guest});
}
