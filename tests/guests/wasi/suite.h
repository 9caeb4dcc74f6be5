// SPDX-License-Identifier: Apache-2.0
// What the tests of WASI's functions have in common. They call the functions themselves, not
// what a C library makes of them.
#pragma once

#include <stdint.h>

#include <wasi/api.h>

#include "functions.h"

// A line on standard error where what came is not what was expected; the test has failed then.
void Compare(const char* file, int line, const char* what, long long expected, long long came);

#define EXPECT(expected, came) \
  Compare(__FILE_NAME__, __LINE__, #came, (long long)(expected), (long long)(came))
#define EXPECT_TRUE(what) EXPECT(1, (what) ? 1 : 0)
#define EXPECT_OK(call) EXPECT(__WASI_ERRNO_SUCCESS, call)

#define FOLLOW __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW
#define NO_FOLLOW ((__wasi_lookupflags_t)0)
#define TO_READ __WASI_RIGHTS_FD_READ
#define TO_WRITE __WASI_RIGHTS_FD_WRITE

// A descriptor that is not open.
#define NOT_OPEN 4711
// The last name that a test has for the exit code of proc_exit.
#define EXIT_CODE 77

// The directory that the guest is given by this name; ends the test where there is none.
__wasi_fd_t Given(const char* name);
// One that can only be read, with a file in it: READ_ONLY_FILE.
#define READ_ONLY "/guests"
#define READ_ONLY_FILE "wasi.wasm"

// A new directory /tmp/NAME, open.
__wasi_fd_t NewFolder(const char* name);
// A file or a directory in one, which has to be there or to be made.
__wasi_fd_t Open(__wasi_fd_t folder, const char* path, __wasi_oflags_t how, __wasi_rights_t to);
// A new file with that text, open for both.
__wasi_fd_t NewFile(__wasi_fd_t folder, const char* path, const char* text);
__wasi_fd_t OpenFolder(__wasi_fd_t folder, const char* path);
void MakeFolder(__wasi_fd_t folder, const char* path);
void MakeLink(const char* target, __wasi_fd_t folder, const char* path);
void Close(__wasi_fd_t file);

// One buffer.
__wasi_errno_t Read(__wasi_fd_t file, void* to, __wasi_size_t size, __wasi_size_t* got);
__wasi_errno_t Write(__wasi_fd_t file, const char* text, __wasi_size_t* put);
// All that a file has is that text.
void ExpectText(__wasi_fd_t file, const char* text);
// What path_open answers; what it has opened is closed.
__wasi_errno_t TryOpen(__wasi_fd_t folder, __wasi_lookupflags_t follow, const char* path,
                       __wasi_oflags_t how, __wasi_rights_t to, __wasi_fdflags_t flags);
__wasi_filestat_t About(__wasi_fd_t folder, const char* path);

#define DECLARE(name) void Test_##name(void);
WASI_FUNCTIONS(DECLARE)
#undef DECLARE

// Of standard input: somebody at its other end says `x` when `waits` has been said, and closes it
// when `read` has.
void PollInput(void);
// A value that WASI does not have: the guest traps.
void AskForNoClock(void);
