// SPDX-License-Identifier: Apache-2.0
// tool.wasm WHAT [ARGUMENT...]: one thing that a guest may do, for the tests. Its exit code
// is 0 where that worked, the errno where it did not.
#include "tool.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int Cat(const char* argument) {
  (void)argument;
  static char bytes[65536];
  for (;;) {
    const ssize_t got = read(0, bytes, sizeof bytes);
    if (got == 0) {
      return 0;
    }
    if (got < 0) {
      return errno;
    }
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = write(1, bytes + done, (size_t)(got - done));
      if (put < 0) {
        return errno;
      }
      done += put;
    }
  }
}

// As many bytes as it is told, the last one a newline.
static int Big(const char* argument) {
  const long size = atol(argument);
  for (long i = 1; i < size; ++i) {
    putchar('a' + (int)(i % 26));
  }
  putchar('\n');
  return fflush(stdout) == 0 ? 0 : errno;
}

static int Exit(const char* argument) { exit(atoi(argument)); }

static int Trap(const char* argument) {
  (void)argument;
  __builtin_trap();
}

static volatile int deep;

__attribute__((noinline)) static int Down(int n) {
  volatile char here[64];
  here[n & 63] = (char)n;
  deep = n < 0 ? 0 : Down(n + 1) + here[n & 63];
  return deep;
}

static int Recurse(const char* argument) { return Down(atoi(argument)); }

// Takes memory by MiB, all of it used, until there is none; says how much it got.
static int Grow(const char* argument) {
  const long most = atol(argument);
  long got = 0;
  for (; got < most; ++got) {
    char* more = malloc(1 << 20);
    if (more == NULL) {
      break;
    }
    memset(more, 1, 1 << 20);
    // Not to be found unused.
    __asm__ volatile("" : : "r"(more) : "memory");
  }
  printf("%ld MiB\n", got);
  return 0;
}

static int Spin(const char* argument) {
  (void)argument;
  puts("spins");
  fflush(stdout);
  for (volatile unsigned i = 0;; ++i) {
  }
}

static int Sleep(const char* argument) {
  const long ms = atol(argument);
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  puts("sleeps");
  fflush(stdout);
  return nanosleep(&time, NULL) == 0 ? 0 : errno;
}

static int Random(const char* argument) {
  (void)argument;
  uint8_t bytes[16];
  if (getentropy(bytes, sizeof bytes) != 0) {
    return errno;
  }
  for (size_t i = 0; i < sizeof bytes; ++i) {
    printf("%02x", bytes[i]);
  }
  puts("");
  return 0;
}

static int Env(const char* argument) {
  const char* value = getenv(argument);
  if (value == NULL) {
    return ENOENT;
  }
  puts(value);
  return 0;
}

static int Terminals(const char* argument) {
  (void)argument;
  printf("%d%d%d\n", isatty(0), isatty(1), isatty(2));
  return 0;
}

// Both streams, so that it can be told which is which.
static int Streams(const char* argument) {
  fprintf(stderr, "err %s\n", argument);
  printf("out %s\n", argument);
  return 0;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int (*run)(const char* argument);
  } tools[] = {{"big", Big},   {"cat", Cat},         {"env", Env},
               {"exit", Exit}, {"files", Files},     {"grow", Grow},
               {"list", List}, {"make", Make},       {"random", Random},
               {"read", Read}, {"recurse", Recurse}, {"sleep", Sleep},
               {"spin", Spin}, {"stream", Stream},   {"streams", Streams},
               {"terminals", Terminals},             {"trap", Trap}};

  for (size_t i = 0; argc > 1 && i < sizeof tools / sizeof *tools; ++i) {
    if (strcmp(argv[1], tools[i].name) == 0) {
      return tools[i].run(argc > 2 ? argv[2] : "0");
    }
  }
  fprintf(stderr, "tool: there is no such thing to do\n");
  return 255;
}
