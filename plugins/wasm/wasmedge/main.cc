// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasmedge: as gantry-wasm, with WasmEdge. The artifact that it is given is the module
// itself.
#include "plugins/wasm/program/guest_program.h"

int main(int argc, char** argv) {
  return gantry::wasm::RunGuestProgram(
      argc, argv, {.program = "gantry-wasmedge", .modules_have_sockets = true});
}
