// SPDX-License-Identifier: Apache-2.0
// Reading, writing and the place for it.
#include <string.h>

#include "suite.h"

void Test_fd_advise(void) {
  const __wasi_fd_t folder = NewFolder("fd_advise");
  const __wasi_fd_t file = NewFile(folder, "file", "text");
  for (__wasi_advice_t advice = 0; advice <= __WASI_ADVICE_NOREUSE; ++advice) {
    EXPECT_OK(__wasi_fd_advise(file, 0, 4, advice));
    EXPECT_OK(__wasi_fd_advise(file, 100, 0, advice));
  }
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_advise(folder, 0, 4, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_advise(0, 0, 4, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_advise(NOT_OPEN, 0, 4, 0));
}

void Test_fd_allocate(void) {
  const __wasi_fd_t folder = NewFolder("fd_allocate");
  const __wasi_fd_t file = NewFile(folder, "file", "text");
  EXPECT(__WASI_ERRNO_NOTSUP, __wasi_fd_allocate(file, 0, 100));
  EXPECT(4, About(folder, "file").size);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_allocate(folder, 0, 100));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_allocate(NOT_OPEN, 0, 100));
}

static void CheckSync(__wasi_errno_t (*sync)(__wasi_fd_t), const char* name) {
  const __wasi_fd_t folder = NewFolder(name);
  EXPECT_OK(sync(NewFile(folder, "file", "text")));
  EXPECT_OK(sync(Open(folder, "file", 0, TO_READ)));
  EXPECT(__WASI_ERRNO_BADF, sync(folder));
  EXPECT(__WASI_ERRNO_BADF, sync(1));
  EXPECT(__WASI_ERRNO_BADF, sync(NOT_OPEN));
}

void Test_fd_sync(void) { CheckSync(__wasi_fd_sync, "fd_sync"); }

void Test_fd_datasync(void) { CheckSync(__wasi_fd_datasync, "fd_datasync"); }

void Test_fd_read(void) {
  const __wasi_fd_t folder = NewFolder("fd_read");
  Close(NewFile(folder, "file", "abcdef"));
  const __wasi_fd_t file = Open(folder, "file", 0, TO_READ);
  char first[4] = "";
  char second[8] = "";
  const __wasi_iovec_t buffers[] = {
      {(uint8_t*)first, 0}, {(uint8_t*)first, 3}, {(uint8_t*)second, 7}};
  // As much as it likes of what there is room for: it fills the first that is not empty.
  __wasi_size_t got = 0;
  EXPECT_OK(__wasi_fd_read(file, buffers, 3, &got));
  EXPECT(3, got);
  EXPECT(0, strcmp(first, "abc"));
  EXPECT_OK(Read(file, second, sizeof second - 1, &got));
  EXPECT(3, got);
  EXPECT(0, strcmp(second, "def"));
  EXPECT_OK(Read(file, second, sizeof second - 1, &got));
  EXPECT(0, got);
  EXPECT_OK(__wasi_fd_read(file, buffers, 0, &got));
  EXPECT(0, got);
  EXPECT(__WASI_ERRNO_BADF, Read(Open(folder, "file", 0, TO_WRITE), first, 1, &got));
  EXPECT(__WASI_ERRNO_BADF, Read(folder, first, 1, &got));
  EXPECT(__WASI_ERRNO_BADF, Read(1, first, 1, &got));
  EXPECT(__WASI_ERRNO_BADF, Read(NOT_OPEN, first, 1, &got));
}

void Test_fd_pread(void) {
  const __wasi_fd_t folder = NewFolder("fd_pread");
  const __wasi_fd_t file = NewFile(folder, "file", "abcdef");
  char text[8] = "";
  const __wasi_iovec_t buffer = {(uint8_t*)text, 3};
  __wasi_size_t got = 0;
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_pread(file, &buffer, 1, 2, &got));
  EXPECT(3, got);
  EXPECT(0, strcmp(text, "cde"));
  EXPECT_OK(__wasi_fd_tell(file, &at));
  EXPECT(6, at);
  EXPECT_OK(__wasi_fd_pread(file, &buffer, 1, 5, &got));
  EXPECT(1, got);
  EXPECT_OK(__wasi_fd_pread(file, &buffer, 1, 100, &got));
  EXPECT(0, got);
  EXPECT(__WASI_ERRNO_SPIPE, __wasi_fd_pread(0, &buffer, 1, 0, &got));
  const __wasi_fd_t writes = Open(folder, "file", 0, TO_WRITE);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pread(writes, &buffer, 1, 0, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pread(folder, &buffer, 1, 0, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pread(NOT_OPEN, &buffer, 1, 0, &got));
}

void Test_fd_write(void) {
  const __wasi_fd_t folder = NewFolder("fd_write");
  const __wasi_fd_t file = NewFile(folder, "file", "");
  const __wasi_ciovec_t buffers[] = {
      {(const uint8_t*)"", 0}, {(const uint8_t*)"abc", 3}, {(const uint8_t*)"def", 3}};
  // As much as it likes: the first that is not empty.
  __wasi_size_t put = 0;
  EXPECT_OK(__wasi_fd_write(file, buffers, 3, &put));
  EXPECT(3, put);
  EXPECT_OK(__wasi_fd_write(file, buffers + 2, 1, &put));
  ExpectText(file, "abcdef");
  EXPECT_OK(__wasi_fd_write(file, buffers, 0, &put));
  EXPECT(0, put);
  EXPECT_OK(__wasi_fd_write(1, buffers, 1, &put));
  EXPECT(0, put);
  EXPECT(__WASI_ERRNO_BADF, Write(Open(folder, "file", 0, TO_READ), "x", &put));
  EXPECT(__WASI_ERRNO_BADF, Write(folder, "x", &put));
  EXPECT(__WASI_ERRNO_BADF, Write(0, "x", &put));
  EXPECT(__WASI_ERRNO_BADF, Write(NOT_OPEN, "x", &put));
}

void Test_fd_pwrite(void) {
  const __wasi_fd_t folder = NewFolder("fd_pwrite");
  const __wasi_fd_t file = NewFile(folder, "file", "abcdef");
  const __wasi_ciovec_t buffer = {(const uint8_t*)"XY", 2};
  __wasi_size_t put = 0;
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_pwrite(file, &buffer, 1, 1, &put));
  EXPECT(2, put);
  ExpectText(file, "aXYdef");
  EXPECT_OK(__wasi_fd_tell(file, &at));
  EXPECT(6, at);
  // Behind the end, with zeros in between.
  EXPECT_OK(__wasi_fd_pwrite(file, &buffer, 1, 8, &put));
  EXPECT(10, About(folder, "file").size);
  // As on Linux: what appends does it wherever it is told to write.
  EXPECT_OK(__wasi_fd_fdstat_set_flags(file, __WASI_FDFLAGS_APPEND));
  EXPECT_OK(__wasi_fd_pwrite(file, &buffer, 1, 0, &put));
  EXPECT(12, About(folder, "file").size);
  EXPECT(__WASI_ERRNO_SPIPE, __wasi_fd_pwrite(1, &buffer, 1, 0, &put));
  const __wasi_fd_t reads = Open(folder, "file", 0, TO_READ);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pwrite(reads, &buffer, 1, 0, &put));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pwrite(folder, &buffer, 1, 0, &put));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_pwrite(NOT_OPEN, &buffer, 1, 0, &put));
}

void Test_fd_seek(void) {
  const __wasi_fd_t folder = NewFolder("fd_seek");
  const __wasi_fd_t file = NewFile(folder, "file", "abcdef");
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_seek(file, 2, __WASI_WHENCE_SET, &at));
  EXPECT(2, at);
  EXPECT_OK(__wasi_fd_seek(file, -1, __WASI_WHENCE_CUR, &at));
  EXPECT(1, at);
  EXPECT_OK(__wasi_fd_seek(file, -2, __WASI_WHENCE_END, &at));
  EXPECT(4, at);
  char text[4] = "";
  __wasi_size_t got = 0;
  EXPECT_OK(Read(file, text, 3, &got));
  EXPECT(0, strcmp(text, "ef"));
  EXPECT_OK(__wasi_fd_seek(file, 1000, __WASI_WHENCE_SET, &at));
  EXPECT_OK(Read(file, text, 3, &got));
  EXPECT(0, got);
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_seek(file, -1, __WASI_WHENCE_SET, &at));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_seek(file, -1001, __WASI_WHENCE_CUR, &at));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_seek(file, -7, __WASI_WHENCE_END, &at));
  EXPECT_OK(__wasi_fd_tell(file, &at));
  EXPECT(1000, at);
  EXPECT(__WASI_ERRNO_SPIPE, __wasi_fd_seek(0, 0, __WASI_WHENCE_CUR, &at));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_seek(folder, 0, __WASI_WHENCE_SET, &at));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_seek(NOT_OPEN, 0, __WASI_WHENCE_SET, &at));
}

void Test_fd_tell(void) {
  const __wasi_fd_t folder = NewFolder("fd_tell");
  const __wasi_fd_t file = NewFile(folder, "file", "abcdef");
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_tell(file, &at));
  EXPECT(6, at);
  EXPECT_OK(__wasi_fd_tell(Open(folder, "file", 0, TO_READ), &at));
  EXPECT(0, at);
  EXPECT(__WASI_ERRNO_SPIPE, __wasi_fd_tell(1, &at));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_tell(folder, &at));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_tell(NOT_OPEN, &at));
}
