// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/run_tests.h"
#include "tests/harness/settings.h"

int main(int argc, char** argv) {
  return gantry::e2e::RunTests(gantry::e2e::ReadSettings(), argc, argv);
}
