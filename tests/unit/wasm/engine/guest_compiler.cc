// SPDX-License-Identifier: Apache-2.0
// guest_compiler MODULE ARTIFACT: compiles, and exits with the kind; 100 and the reason where
// that cannot be.
#include <fcntl.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "plugins/wasm/engine/include/gantry_wasm_compiler.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    return 101;
  }
  std::ifstream file(argv[1], std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", argv[1]);
    return 102;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const int output = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  uint32_t kind = 0;
  char why[1024] = "";
  if (gantry_wasm_compile(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), output,
                          &kind, why, sizeof why) != GANTRY_WASM_OK) {
    std::fprintf(stderr, "%s: %s\n", argv[1], why);
    return 100;
  }
  return static_cast<int>(kind);
}
