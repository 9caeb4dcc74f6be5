// SPDX-License-Identifier: Apache-2.0
// Arguments, environment, clocks, random bytes, the end.
#include <string.h>

#include "suite.h"

// No longer a function of wasi-libc, but of WASI.
__attribute__((__import_module__("wasi_snapshot_preview1"),
               __import_name__("proc_raise"))) __wasi_errno_t
RaiseSignal(uint32_t signal);

typedef __wasi_errno_t Sizes(__wasi_size_t* count, __wasi_size_t* bytes);
typedef __wasi_errno_t Get(uint8_t** list, uint8_t* bytes);

enum { kMost = 64, kMostBytes = 8192 };

static uint8_t* list[kMost];
static uint8_t bytes[kMostBytes];

// What lies outside of the memory, but for its first two bytes.
static uint32_t* Outside(void) { return (uint32_t*)(__builtin_wasm_memory_size(0) * 65536 - 2); }

static void CheckSizes(Sizes* sizes) {
  __wasi_size_t count = 0;
  __wasi_size_t size = 0;
  EXPECT_OK(sizes(&count, &size));
  EXPECT_TRUE(count > 0 && count < kMost);
  EXPECT_TRUE(size > count && size < kMostBytes);
  EXPECT(__WASI_ERRNO_FAULT, sizes((__wasi_size_t*)Outside(), &size));
  EXPECT(__WASI_ERRNO_FAULT, sizes(&count, (__wasi_size_t*)Outside()));
}

// One after the other, each with a zero byte, and no more of them.
static void CheckList(Sizes* sizes, Get* get) {
  __wasi_size_t count = 0;
  __wasi_size_t size = 0;
  EXPECT_OK(sizes(&count, &size));
  memset(bytes, 1, sizeof bytes);
  EXPECT_OK(get(list, bytes));
  uint8_t* next = bytes;
  for (__wasi_size_t i = 0; i < count; ++i) {
    EXPECT(next, list[i]);
    next += strlen((char*)next) + 1;
  }
  EXPECT(size, next - bytes);
  EXPECT(1, *next);
  EXPECT(0, (intptr_t)list[count]);
  EXPECT(__WASI_ERRNO_FAULT, get((uint8_t**)Outside(), bytes));
  EXPECT(__WASI_ERRNO_FAULT, get(list, (uint8_t*)Outside()));
}

void Test_args_sizes_get(void) { CheckSizes(__wasi_args_sizes_get); }

void Test_args_get(void) {
  memset(list, 0, sizeof list);
  CheckList(__wasi_args_sizes_get, __wasi_args_get);
}

void Test_environ_sizes_get(void) { CheckSizes(__wasi_environ_sizes_get); }

void Test_environ_get(void) {
  memset(list, 0, sizeof list);
  CheckList(__wasi_environ_sizes_get, __wasi_environ_get);
  EXPECT_TRUE(strchr((char*)bytes, '=') != NULL);
}

void Test_clock_res_get(void) {
  __wasi_timestamp_t resolution = 0;
  EXPECT_OK(__wasi_clock_res_get(__WASI_CLOCKID_REALTIME, &resolution));
  EXPECT_TRUE(resolution > 0);
  resolution = 0;
  EXPECT_OK(__wasi_clock_res_get(__WASI_CLOCKID_MONOTONIC, &resolution));
  EXPECT_TRUE(resolution > 0);
  // Those of processor time are not there.
  EXPECT(__WASI_ERRNO_BADF, __wasi_clock_res_get(2, &resolution));
  EXPECT(__WASI_ERRNO_BADF, __wasi_clock_res_get(3, &resolution));
}

void Test_clock_time_get(void) {
  const __wasi_timestamp_t in_2024 = 1704067200 * 1000000000ULL;
  __wasi_timestamp_t time = 0;
  EXPECT_OK(__wasi_clock_time_get(__WASI_CLOCKID_REALTIME, 1, &time));
  EXPECT_TRUE(time > in_2024);
  __wasi_timestamp_t before = 0;
  EXPECT_OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &before));
  EXPECT_OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &time));
  EXPECT_TRUE(time >= before);
  EXPECT(__WASI_ERRNO_BADF, __wasi_clock_time_get(2, 1, &time));
  EXPECT(__WASI_ERRNO_BADF, __wasi_clock_time_get(3, 1, &time));
}

void AskForNoClock(void) {
  __wasi_timestamp_t time = 0;
  EXPECT_OK(__wasi_clock_time_get(4, 1, &time));
}

void Test_proc_exit(void) { __wasi_proc_exit(EXIT_CODE); }

void Test_proc_raise(void) {
  enum { kNone = 0, kTerm = 15 };

  EXPECT(__WASI_ERRNO_NOTSUP, RaiseSignal(kNone));
  EXPECT(__WASI_ERRNO_NOTSUP, RaiseSignal(kTerm));
}

void Test_sched_yield(void) { EXPECT_OK(__wasi_sched_yield()); }

void Test_random_get(void) {
  static uint8_t other[kMostBytes];
  EXPECT_OK(__wasi_random_get(bytes, sizeof bytes));
  EXPECT_OK(__wasi_random_get(other, sizeof other));
  EXPECT_TRUE(memcmp(bytes, other, sizeof bytes) != 0);
  memset(bytes, 1, 2);
  EXPECT_OK(__wasi_random_get(bytes, 0));
  EXPECT(1, bytes[0]);
}
