// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm: makes the container of a config.json, or a process more in one that runs, and runs a
// WebAssembly guest in it, of which it is given the compiled artifact.
#include "plugins/wasm/program/guest_program.h"

int main(int argc, char** argv) {
  return gantry::wasm::RunGuestProgram(argc, argv, {.program = "gantry-wasm"});
}
