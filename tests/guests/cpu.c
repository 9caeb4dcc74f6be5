// SPDX-License-Identifier: Apache-2.0
// cpu matmul|sieve|fib: says how many milliseconds the best of its rounds took. For the
// benchmark, which has it as a module and as a program for the kernel.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { kRounds = 5, kSide = 200, kNumbers = 4000000, kFib = 32 };

// What is computed is needed: no compiler leaves it out.
static volatile double kept;

static void Matmul(void) {
  static double left[kSide][kSide];
  static double right[kSide][kSide];
  static double product[kSide][kSide];
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      left[i][j] = i + j;
      right[i][j] = i - j;
    }
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      double sum = 0;
      for (int k = 0; k < kSide; ++k) {
        sum += left[i][k] * right[k][j];
      }
      product[i][j] = sum;
    }
  }
  kept = product[kSide / 2][kSide / 3];
}

static void Sieve(void) {
  static uint8_t composite[kNumbers];
  memset(composite, 0, sizeof composite);
  int primes = 0;
  for (int64_t i = 2; i < kNumbers; ++i) {
    if (composite[i]) {
      continue;
    }
    ++primes;
    for (int64_t multiple = i * i; multiple < kNumbers; multiple += i) {
      composite[multiple] = 1;
    }
  }
  kept = primes;
}

static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

static void FibOfSome(void) {
  volatile int n = kFib;
  kept = Fib(n);
}

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {{"matmul", Matmul}, {"sieve", Sieve}, {"fib", FibOfSome}};

  for (size_t i = 0; argc > 1 && i < sizeof tests / sizeof *tests; ++i) {
    if (strcmp(argv[1], tests[i].name) != 0) {
      continue;
    }
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
      const double begin = Now();
      tests[i].run();
      const double took = Now() - begin;
      best = took < best ? took : best;
    }
    printf("%.4f\n", best);
    return 0;
  }
  fprintf(stderr, "cpu: there is no such test\n");
  return 255;
}
