// SPDX-License-Identifier: Apache-2.0
// steps.wasm FOLDER COUNT END: says "ready", then "step N" for each N from 1 to COUNT as soon as
// there is FOLDER/N, which who runs it makes. END is the exit code, `trap`, or `hold`: takes
// 20 MiB, says "holds" and waits for ever; or `grow`: takes memory until it is ended.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void WaitFor(const char* path) {
  static const struct timespec kLookAgain = {0, 5 * 1000 * 1000};
  struct stat about;
  while (stat(path, &about) != 0) {
    nanosleep(&kLookAgain, NULL);
  }
}

static void TakeMiB(void) {
  char* more = malloc(1 << 20);
  if (more == NULL) {
    return;
  }
  memset(more, 1, 1 << 20);
  // Not to be found unused.
  __asm__ volatile("" : : "r"(more) : "memory");
}

static void Grow(void) {
  for (;;) {
    TakeMiB();
  }
}

static void Hold(void) {
  for (int i = 0; i < 20; ++i) {
    TakeMiB();
  }
  puts("holds");
  fflush(stdout);
  const struct timespec day = {86400, 0};
  for (;;) {
    nanosleep(&day, NULL);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "steps: FOLDER COUNT END\n");
    return 255;
  }
  puts("ready");
  fflush(stdout);
  const int count = atoi(argv[2]);
  for (int i = 1; i <= count; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/%d", argv[1], i);
    WaitFor(path);
    printf("step %d\n", i);
    fflush(stdout);
  }
  if (strcmp(argv[3], "trap") == 0) {
    __builtin_trap();
  }
  if (strcmp(argv[3], "grow") == 0) {
    Grow();
  }
  if (strcmp(argv[3], "hold") == 0) {
    Hold();
  }
  return atoi(argv[3]);
}
