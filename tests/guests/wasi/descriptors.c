// SPDX-License-Identifier: Apache-2.0
// What a descriptor is, what is known of it, and its end.
#include <string.h>

#include "suite.h"

void Test_fd_close(void) {
  const __wasi_fd_t folder = NewFolder("fd_close");
  const __wasi_fd_t file = NewFile(folder, "file", "text");
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_close(file));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_close(file));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_tell(file, &at));
  EXPECT_OK(__wasi_fd_close(folder));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_close(folder));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_close(NOT_OPEN));
}

static void ExpectStat(__wasi_fd_t fd, __wasi_filetype_t type, __wasi_fdflags_t flags,
                       __wasi_rights_t has, __wasi_rights_t has_not) {
  __wasi_fdstat_t stat;
  memset(&stat, 0xff, sizeof stat);
  EXPECT_OK(__wasi_fd_fdstat_get(fd, &stat));
  EXPECT(type, stat.fs_filetype);
  EXPECT(flags, stat.fs_flags);
  EXPECT(has, stat.fs_rights_base & has);
  EXPECT(0, stat.fs_rights_base & has_not);
}

void Test_fd_fdstat_get(void) {
  const __wasi_fd_t folder = NewFolder("fd_fdstat_get");
  Close(NewFile(folder, "file", "text"));
  const __wasi_fd_t reads = Open(folder, "file", 0, TO_READ);
  const __wasi_fd_t writes = Open(folder, "file", 0, TO_WRITE);
  ExpectStat(reads, __WASI_FILETYPE_REGULAR_FILE, 0, TO_READ, TO_WRITE);
  ExpectStat(writes, __WASI_FILETYPE_REGULAR_FILE, 0, TO_WRITE, TO_READ);
  ExpectStat(folder, __WASI_FILETYPE_DIRECTORY, 0, __WASI_RIGHTS_FD_READDIR,
             __WASI_RIGHTS_FD_SEEK | TO_WRITE);
  ExpectStat(Given("/"), __WASI_FILETYPE_DIRECTORY, 0, __WASI_RIGHTS_PATH_OPEN,
             __WASI_RIGHTS_FD_SEEK);
  ExpectStat(0, __WASI_FILETYPE_UNKNOWN, 0, TO_READ, __WASI_RIGHTS_FD_SEEK);
  ExpectStat(1, __WASI_FILETYPE_UNKNOWN, 0, TO_WRITE, __WASI_RIGHTS_FD_SEEK);
  __wasi_fd_t appends = -1;
  const __wasi_fdflags_t both = __WASI_FDFLAGS_APPEND | __WASI_FDFLAGS_NONBLOCK;
  EXPECT_OK(__wasi_path_open(folder, 0, "file", 0, TO_WRITE, 0, both, &appends));
  ExpectStat(appends, __WASI_FILETYPE_REGULAR_FILE, both, TO_WRITE, 0);
  __wasi_fdstat_t stat;
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_fdstat_get(NOT_OPEN, &stat));
}

void Test_fd_fdstat_set_flags(void) {
  const __wasi_fd_t folder = NewFolder("fd_fdstat_set_flags");
  const __wasi_fd_t file = NewFile(folder, "file", "one");
  __wasi_size_t put = 0;
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_fdstat_set_flags(file, __WASI_FDFLAGS_APPEND));
  ExpectStat(file, __WASI_FILETYPE_REGULAR_FILE, __WASI_FDFLAGS_APPEND, TO_WRITE, 0);
  EXPECT_OK(__wasi_fd_seek(file, 0, __WASI_WHENCE_SET, &at));
  EXPECT_OK(Write(file, "two", &put));
  ExpectText(file, "onetwo");
  EXPECT_OK(__wasi_fd_fdstat_set_flags(file, __WASI_FDFLAGS_NONBLOCK));
  ExpectStat(file, __WASI_FILETYPE_REGULAR_FILE, __WASI_FDFLAGS_NONBLOCK, TO_WRITE, 0);
  EXPECT_OK(__wasi_fd_seek(file, 0, __WASI_WHENCE_SET, &at));
  EXPECT_OK(Write(file, "ONE", &put));
  ExpectText(file, "ONEtwo");
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_fdstat_set_flags(file, __WASI_FDFLAGS_SYNC));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_fdstat_set_flags(file, __WASI_FDFLAGS_DSYNC));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_fdstat_set_flags(folder, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_fdstat_set_flags(NOT_OPEN, 0));
}

// Rights are what WASI had and has no more.
void Test_fd_fdstat_set_rights(void) {
  const __wasi_fd_t file = NewFile(NewFolder("fd_fdstat_set_rights"), "file", "");
  EXPECT(__WASI_ERRNO_NOTSUP, __wasi_fd_fdstat_set_rights(file, TO_READ, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_fdstat_set_rights(NOT_OPEN, 0, 0));
}

void Test_fd_filestat_get(void) {
  const __wasi_fd_t folder = NewFolder("fd_filestat_get");
  const __wasi_fd_t file = NewFile(folder, "file", "text");
  __wasi_filestat_t about;
  EXPECT_OK(__wasi_fd_filestat_get(file, &about));
  EXPECT(__WASI_FILETYPE_REGULAR_FILE, about.filetype);
  EXPECT(4, about.size);
  EXPECT(1, about.nlink);
  EXPECT_TRUE(about.mtim > 0 && about.atim > 0 && about.ctim > 0);
  const __wasi_filestat_t again = About(folder, "file");
  EXPECT(again.ino, about.ino);
  EXPECT(again.dev, about.dev);
  EXPECT_OK(__wasi_fd_filestat_get(folder, &about));
  EXPECT(__WASI_FILETYPE_DIRECTORY, about.filetype);
  EXPECT_TRUE(again.ino != about.ino);
  EXPECT_OK(__wasi_fd_filestat_get(0, &about));
  EXPECT(0, about.size);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_get(NOT_OPEN, &about));
}

void Test_fd_filestat_set_size(void) {
  const __wasi_fd_t folder = NewFolder("fd_filestat_set_size");
  const __wasi_fd_t file = NewFile(folder, "file", "long text");
  EXPECT_OK(__wasi_fd_filestat_set_size(file, 4));
  ExpectText(file, "long");
  EXPECT_OK(__wasi_fd_filestat_set_size(file, 6));
  EXPECT(6, About(folder, "file").size);
  char bytes[8] = "xxxxxxx";
  __wasi_size_t got = 0;
  const __wasi_iovec_t buffer = {(uint8_t*)bytes, sizeof bytes};
  EXPECT_OK(__wasi_fd_pread(file, &buffer, 1, 0, &got));
  EXPECT(6, got);
  EXPECT(0, memcmp(bytes, "long\0\0x", 8));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_size(file, UINT64_MAX));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_fd_filestat_set_size(Open(folder, "file", 0, TO_READ), 1));
  const __wasi_fd_t given = Open(Given(READ_ONLY), READ_ONLY_FILE, 0, TO_READ);
  EXPECT(__WASI_ERRNO_PERM, __wasi_fd_filestat_set_size(given, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_set_size(folder, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_set_size(1, 0));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_set_size(NOT_OPEN, 0));
}

void Test_fd_filestat_set_times(void) {
  const __wasi_fd_t folder = NewFolder("fd_filestat_set_times");
  const __wasi_fd_t file = NewFile(folder, "file", "");
  const __wasi_fstflags_t both = __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM;
  EXPECT_OK(__wasi_fd_filestat_set_times(file, 1000000000, 2000000001, both));
  __wasi_filestat_t about = About(folder, "file");
  EXPECT(1000000000, about.atim);
  EXPECT(2000000001, about.mtim);
  EXPECT_OK(__wasi_fd_filestat_set_times(file, 5, 3000000000, __WASI_FSTFLAGS_MTIM));
  about = About(folder, "file");
  EXPECT(1000000000, about.atim);
  EXPECT(3000000000, about.mtim);
  EXPECT_OK(__wasi_fd_filestat_set_times(file, 0, 0, __WASI_FSTFLAGS_ATIM_NOW));
  EXPECT_TRUE(About(folder, "file").atim > 3000000000);
  EXPECT(__WASI_ERRNO_INVAL,
         __wasi_fd_filestat_set_times(file, 0, 0, __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW));
  EXPECT_OK(__wasi_fd_filestat_set_times(folder, 0, 4000000000, __WASI_FSTFLAGS_MTIM));
  const __wasi_fd_t given = Open(Given(READ_ONLY), READ_ONLY_FILE, 0, TO_READ);
  EXPECT(__WASI_ERRNO_PERM, __wasi_fd_filestat_set_times(given, 0, 0, both));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_set_times(1, 0, 0, both));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_filestat_set_times(NOT_OPEN, 0, 0, both));
}

void Test_fd_prestat_get(void) {
  __wasi_prestat_t about;
  memset(&about, 0xff, sizeof about);
  EXPECT_OK(__wasi_fd_prestat_get(Given(READ_ONLY), &about));
  EXPECT(__WASI_PREOPENTYPE_DIR, about.tag);
  EXPECT(strlen(READ_ONLY), about.u.dir.pr_name_len);
  // The first is the root.
  EXPECT_OK(__wasi_fd_prestat_get(3, &about));
  EXPECT(1, about.u.dir.pr_name_len);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(NewFolder("fd_prestat_get"), &about));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(0, &about));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_prestat_get(NOT_OPEN, &about));
}

void Test_fd_prestat_dir_name(void) {
  char name[16] = "xxxxxxxxxxxxxxx";
  const __wasi_size_t size = strlen(READ_ONLY);
  EXPECT_OK(__wasi_fd_prestat_dir_name(Given(READ_ONLY), (uint8_t*)name, size));
  EXPECT(0, memcmp(name, READ_ONLY "x", size + 1));
  EXPECT_OK(__wasi_fd_prestat_dir_name(3, (uint8_t*)name, sizeof name));
  EXPECT('/', name[0]);
  EXPECT(__WASI_ERRNO_NAMETOOLONG,
         __wasi_fd_prestat_dir_name(Given(READ_ONLY), (uint8_t*)name, size - 1));
  EXPECT(__WASI_ERRNO_NOTDIR, __wasi_fd_prestat_dir_name(0, (uint8_t*)name, size));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_prestat_dir_name(NOT_OPEN, (uint8_t*)name, size));
}

void Test_fd_renumber(void) {
  const __wasi_fd_t folder = NewFolder("fd_renumber");
  const __wasi_fd_t one = NewFile(folder, "one", "first");
  const __wasi_fd_t two = NewFile(folder, "two", "second");
  __wasi_filesize_t at = 0;
  EXPECT_OK(__wasi_fd_renumber(one, two));
  ExpectText(two, "first");
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_tell(one, &at));
  EXPECT_OK(__wasi_fd_renumber(two, two));
  ExpectText(two, "first");
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_renumber(one, two));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_renumber(two, NOT_OPEN));
  ExpectText(two, "first");
}
