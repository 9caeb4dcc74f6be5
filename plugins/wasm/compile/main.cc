// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm-compile: compiles one module, which may be anybody's, and ends. Whoever starts it
// has taken everything from it but its descriptors and a processor (plugins/wasm/cache/compiler.h);
// what it can give up only when it runs, it gives up here, before it looks at the module's first
// byte. What comes out is trusted by nobody but the containers of that very module.
//
// It is static, and of the C++ library has nothing.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "gantry_wasm_compiler.h"
#include "plugins/wasm/compile/calls.h"
#include "plugins/wasm/compile/protocol.h"

namespace gantry::wasm::compile {
namespace {

constexpr CallFilter kFilter = MakeCallFilter(false);
/// Others go first: a container's start is not what the node is for.
constexpr int kNice = 10;
constexpr size_t kMaxWhy = 4096;

bool WriteAll(int to, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t put = write(to, bytes, size);
    if (put <= 0) {
      return false;
    }
    bytes += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

/// `text` between quotes of JSON. Bytes that are none of ASCII become `?`.
size_t Quote(const char* text, char* out) {
  size_t at = 0;
  for (; *text != '\0'; ++text) {
    if (*text == '\n') {
      out[at++] = '\\';
      out[at++] = 'n';
      continue;
    }
    if (*text == '"' || *text == '\\') {
      out[at++] = '\\';
    }
    out[at++] = *text < ' ' || *text > '~' ? '?' : *text;
  }
  return at;
}

int AnswerError(const char* code, const char* message) {
  char line[128 + 2 * kMaxWhy];
  static_assert(sizeof(line) <= kMaxAnswer);
  size_t size =
      static_cast<size_t>(snprintf(line, 96, R"({"error":{"code":"%s","message":")", code));
  size += Quote(message, line + size);
  constexpr char kEnd[] = "\"}}\n";
  memcpy(line + size, kEnd, sizeof(kEnd));
  return WriteAll(kAnswer, line, size + sizeof(kEnd) - 1) ? 0 : 1;
}

int AnswerKind(uint32_t kind) {
  constexpr const char* kNames[] = {"module", "command", "proxy"};
  if (kind >= sizeof(kNames) / sizeof(kNames[0])) {
    return AnswerError("INTERNAL", "the compiler does not say what the module is");
  }
  char line[64];
  const int size = snprintf(line, sizeof(line), "{\"kind\":\"%s\"}\n", kNames[kind]);
  return WriteAll(kAnswer, line, static_cast<size_t>(size)) ? 0 : 1;
}

/// From here on memory and descriptors are all there is.
bool Confine() {
  static_cast<void>(setpriority(PRIO_PROCESS, 0, kNice));
  const sock_fprog filter = {kFilter.size, const_cast<sock_filter*>(kFilter.code)};
  return prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Null: `fd` is the file that it has to be.
const char* LookAt(int fd, bool sealed, struct stat& info) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return "one of the descriptors 3, 4 and 5 is no file";
  }
  if (sealed && (fcntl(fd, F_GET_SEALS) & kSeals) != kSeals) {
    return "the module is not in a sealed file";
  }
  return nullptr;
}

int Compile() {
  // Linux before 5.9 does not have it, and there what was given is all there is.
  static_cast<void>(syscall(SYS_close_range, kAnswer + 1, ~0U, 0));
  struct stat module = {};
  struct stat other = {};
  for (const char* wrong : {LookAt(kAnswer, false, other), LookAt(kArtifact, false, other),
                            LookAt(kModule, true, module)}) {
    if (wrong != nullptr) {
      return AnswerError("INTERNAL", wrong);
    }
  }
  if (module.st_size <= 0) {
    return AnswerError("INVALID_ARGUMENT", "the module is empty");
  }
  const auto size = static_cast<size_t>(module.st_size);
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, kModule, 0);
  if (bytes == MAP_FAILED) {
    return AnswerError("RESOURCE_EXHAUSTED", "the module does not fit into the compiler's memory");
  }
  if (!Confine()) {
    return AnswerError("INTERNAL", "the compiler cannot set its system call filter");
  }
  uint32_t kind = 0;
  static char why[kMaxWhy];
  const int answer = gantry_wasm_compile(static_cast<const uint8_t*>(bytes), size, kArtifact, &kind,
                                         why, sizeof(why));
  why[sizeof(why) - 1] = '\0';
  if (answer == GANTRY_WASM_OK) {
    return AnswerKind(kind);
  }
  return AnswerError(answer == GANTRY_WASM_INVALID ? "INVALID_ARGUMENT" : "INTERNAL", why);
}

int Describe() {
  if (!Confine()) {
    return 1;
  }
  const char* const line = gantry_wasm_compiler();
  return WriteAll(STDOUT_FILENO, line, strlen(line)) && WriteAll(STDOUT_FILENO, "\n", 1) ? 0 : 1;
}

}  // namespace
}  // namespace gantry::wasm::compile

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "describe") == 0) {
    return gantry::wasm::compile::Describe();
  }
  if (argc == 2 && strcmp(argv[1], "compile") == 0) {
    return gantry::wasm::compile::Compile();
  }
  fputs("usage: gantry-wasm-compile describe|compile\n", stderr);
  return 2;
}
