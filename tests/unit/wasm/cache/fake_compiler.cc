// SPDX-License-Identifier: Apache-2.0
//
// A compiler that does what the module says: it stands in for gantry_wasm_compiler in
// gantry-wasm-compile.
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gantry_wasm_compiler.h"
#include "plugins/wasm/compile/protocol.h"

namespace {

bool Says(const uint8_t* bytes, size_t size, const char* word) {
  const size_t length = strlen(word);
  return size >= length && memcmp(bytes, word, length) == 0;
}

[[noreturn]] void SaysNothing() {
  int word = 0;
  for (;;) {
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr);
  }
}

[[noreturn]] void TakeAllMemory() {
  constexpr size_t kPiece = size_t{1} << 20;
  while (malloc(kPiece) != nullptr) {
  }
  // As Rust's library says it.
  fprintf(stderr, "memory allocation of %zu bytes failed\n", kPiece);
  abort();
}

int WriteAllThereIs(int output) {
  static char piece[1 << 16];
  while (write(output, piece, sizeof(piece)) > 0) {
  }
  return GANTRY_WASM_SYSTEM;
}

/// Gives an answer that is none.
[[noreturn]] void Answer(const uint8_t* text, size_t size) {
  _exit(write(gantry::wasm::compile::kAnswer, text, size) == static_cast<ssize_t>(size) ? 0 : 1);
}

/// What it may not do: 0 where it was refused with an error, else the process has ended.
int Reach(const char* what) {
  if (strcmp(what, "file") == 0) {
    return open("/", O_RDONLY | O_CLOEXEC) >= 0 ? 1 : 0;
  }
  if (strcmp(what, "socket") == 0) {
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 1 : 0;
  }
  if (strcmp(what, "process") == 0) {
    return fork() >= 0 ? 1 : 0;
  }
  if (strcmp(what, "program") == 0) {
    execl("/proc/self/exe", "x", nullptr);
    return 1;
  }
  return mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0) == MAP_FAILED
             ? 0
             : 1;
}

}  // namespace

const char* gantry_wasm_compiler(void) { return FAKE_LINE; }

int gantry_wasm_compile(const uint8_t* bytes, size_t size, int output, uint32_t* kind, char* why,
                        size_t why_size) {
  *kind = Says(bytes, size, "proxy")     ? GANTRY_WASM_PROXY
          : Says(bytes, size, "command") ? GANTRY_WASM_COMMAND
                                         : GANTRY_WASM_MODULE;
  if (Says(bytes, size, "invalid")) {
    snprintf(why, why_size, "at byte 7:\n\"odd\\\"");
    return GANTRY_WASM_INVALID;
  }
  if (Says(bytes, size, "silent")) {
    SaysNothing();
  }
  if (Says(bytes, size, "memory")) {
    TakeAllMemory();
  }
  if (Says(bytes, size, "much")) {
    return WriteAllThereIs(output);
  }
  if (Says(bytes, size, "crash")) {
    abort();
  }
  if (Says(bytes, size, "answer ")) {
    Answer(bytes + 7, size - 7);
  }
  if (Says(bytes, size, "nothing")) {
    return GANTRY_WASM_OK;
  }
  if (Says(bytes, size, "reach ")) {
    char what[16] = {};
    memcpy(what, bytes + 6, size - 6 < sizeof(what) ? size - 6 : sizeof(what) - 1);
    snprintf(why, why_size, Reach(what) == 0 ? "refused" : "reached");
    return GANTRY_WASM_INVALID;
  }
  const char* const of = FAKE_LINE " made of ";
  return write(output, of, strlen(of)) > 0 && write(output, bytes, size) > 0 ? GANTRY_WASM_OK
                                                                             : GANTRY_WASM_SYSTEM;
}
