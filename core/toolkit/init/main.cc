// SPDX-License-Identifier: Apache-2.0
//
// gantry-init: makes the container of a config.json, or a process more in one that runs, waits at a
// gate and executes its program. docs/gantry-init.md says what it is given and what it answers.
#include <gantry/toolkit/init/gated_program.h>

extern char** environ;

int main(int argc, char** argv) {
  return gantry::init::RunGatedProgram(argc, argv, environ, {.name = "gantry-init"});
}
