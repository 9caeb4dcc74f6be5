// SPDX-License-Identifier: Apache-2.0
// pages.wasm PAGES...: asks for so many pages of 64 KiB more, one after the other, and says what
// memory.grow answers. It uses none of them.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const size_t pages = (size_t)atol(argv[i]);
    const size_t before = __builtin_wasm_memory_grow(0, pages);
    printf("%zu: %s\n", pages, before == (size_t)-1 ? "-1" : "grown");
  }
  return 0;
}
