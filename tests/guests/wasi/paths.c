// SPDX-License-Identifier: Apache-2.0
// What is opened and known by a path, which leads nowhere out of the directory it begins in.
#include <string.h>

#include "suite.h"

// In each test's folder: what leads elsewhere.
static __wasi_fd_t FolderWithLinks(const char* name) {
  const __wasi_fd_t folder = NewFolder(name);
  MakeFolder(folder, "inner");
  Close(NewFile(folder, "inner/file", "text"));
  MakeLink("inner/file", folder, "to_file");
  MakeLink("inner", folder, "to_folder");
  MakeLink("none", folder, "dangling");
  MakeLink("loop", folder, "loop");
  MakeLink("../../etc/passwd", folder, "out");
  return folder;
}

// Each way out of the directory, by a call with a path.
#define EXPECT_NO_WAY_OUT(call_with)                                  \
  do {                                                                \
    const char* const ways[] = {"..", "../x", "inner/../../x", "/x"}; \
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {       \
      const char* const path = ways[i];                               \
      EXPECT(__WASI_ERRNO_PERM, call_with);                           \
    }                                                                 \
  } while (0)

static void CheckOpening(__wasi_fd_t folder) {
  const __wasi_oflags_t create = __WASI_OFLAGS_CREAT;
  EXPECT_OK(TryOpen(folder, 0, "new", create, TO_WRITE, 0));
  EXPECT_OK(TryOpen(folder, 0, "new", create, TO_WRITE, 0));
  EXPECT(__WASI_ERRNO_EXIST, TryOpen(folder, 0, "new", create | __WASI_OFLAGS_EXCL, TO_WRITE, 0));
  EXPECT(__WASI_ERRNO_NOENT, TryOpen(folder, 0, "none", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_NOENT, TryOpen(folder, 0, "none/new", create, TO_WRITE, 0));
  EXPECT(__WASI_ERRNO_NOTDIR, TryOpen(folder, 0, "inner/file/x", 0, TO_READ, 0));
  const __wasi_oflags_t directory = __WASI_OFLAGS_DIRECTORY;
  EXPECT_OK(TryOpen(folder, 0, "inner", directory, TO_READ, 0));
  EXPECT_OK(TryOpen(folder, 0, "inner/", directory, TO_READ, 0));
  EXPECT_OK(TryOpen(folder, 0, ".", directory, TO_READ, 0));
  EXPECT_OK(TryOpen(folder, 0, "inner/../inner/file", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_NOTDIR, TryOpen(folder, 0, "inner/file", directory, TO_READ, 0));
  EXPECT(__WASI_ERRNO_ISDIR, TryOpen(folder, 0, "inner", 0, TO_WRITE, 0));
  EXPECT(__WASI_ERRNO_INVAL, TryOpen(folder, 0, "made", directory | create, TO_READ, 0));
  EXPECT(__WASI_ERRNO_NOENT, TryOpen(folder, 0, "", 0, TO_READ, 0));
}

static void CheckLinks(__wasi_fd_t folder) {
  EXPECT_OK(TryOpen(folder, FOLLOW, "to_file", 0, TO_READ, 0));
  EXPECT_OK(TryOpen(folder, 0, "to_folder/file", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_LOOP, TryOpen(folder, 0, "to_file", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_NOENT, TryOpen(folder, FOLLOW, "dangling", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_LOOP, TryOpen(folder, FOLLOW, "loop", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_LOOP, TryOpen(folder, FOLLOW, "loop/x", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(folder, FOLLOW, "out", 0, TO_READ, 0));
  EXPECT_NO_WAY_OUT(TryOpen(folder, FOLLOW, path, 0, TO_READ, 0));
  // There is nothing above the root, as in the kernel, but to ask for it.
  EXPECT(__WASI_ERRNO_PERM, TryOpen(Given("/"), FOLLOW, "..", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(Given("/"), FOLLOW, "/etc/passwd", 0, TO_READ, 0));
}

void Test_path_open(void) {
  const __wasi_fd_t folder = FolderWithLinks("path_open");
  CheckOpening(folder);
  CheckLinks(folder);
  const __wasi_fd_t file = Open(folder, "inner/file", __WASI_OFLAGS_TRUNC, TO_READ | TO_WRITE);
  ExpectText(file, "");
  // How a file is written through is not to be had.
  EXPECT(__WASI_ERRNO_NOTSUP, TryOpen(folder, 0, "inner/file", 0, TO_WRITE, __WASI_FDFLAGS_SYNC));
  EXPECT(__WASI_ERRNO_NOTDIR, TryOpen(file, 0, "x", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_BADF, TryOpen(0, 0, "x", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_BADF, TryOpen(NOT_OPEN, 0, "x", 0, TO_READ, 0));
  const __wasi_fd_t given = Given(READ_ONLY);
  EXPECT_OK(TryOpen(given, 0, READ_ONLY_FILE, 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(given, 0, READ_ONLY_FILE, 0, TO_WRITE, 0));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(given, 0, READ_ONLY_FILE, __WASI_OFLAGS_TRUNC, TO_READ, 0));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(given, 0, "new", __WASI_OFLAGS_CREAT, TO_WRITE, 0));
}

static __wasi_errno_t Stat(__wasi_fd_t folder, __wasi_lookupflags_t follow, const char* path) {
  __wasi_filestat_t about;
  return __wasi_path_filestat_get(folder, follow, path, &about);
}

void Test_path_filestat_get(void) {
  const __wasi_fd_t folder = FolderWithLinks("path_filestat_get");
  __wasi_filestat_t about = About(folder, "inner/file");
  EXPECT(__WASI_FILETYPE_REGULAR_FILE, about.filetype);
  EXPECT(4, about.size);
  EXPECT(1, about.nlink);
  const __wasi_inode_t file = about.ino;
  about = About(folder, "to_file");
  EXPECT(__WASI_FILETYPE_SYMBOLIC_LINK, about.filetype);
  EXPECT(strlen("inner/file"), about.size);
  EXPECT_TRUE(file != about.ino);
  EXPECT_OK(__wasi_path_filestat_get(folder, FOLLOW, "to_file", &about));
  EXPECT(file, about.ino);
  EXPECT(__WASI_FILETYPE_DIRECTORY, About(folder, "inner").filetype);
  EXPECT(__WASI_FILETYPE_DIRECTORY, About(folder, ".").filetype);
  EXPECT(__WASI_ERRNO_NOENT, Stat(folder, FOLLOW, "dangling"));
  EXPECT_OK(Stat(folder, 0, "dangling"));
  EXPECT(__WASI_ERRNO_LOOP, Stat(folder, FOLLOW, "loop"));
  EXPECT(__WASI_ERRNO_NOENT, Stat(folder, 0, "none"));
  EXPECT(__WASI_ERRNO_NOTDIR, Stat(folder, 0, "inner/file/x"));
  EXPECT(__WASI_ERRNO_PERM, Stat(folder, FOLLOW, "out"));
  EXPECT_NO_WAY_OUT(Stat(folder, 0, path));
  EXPECT(__WASI_ERRNO_BADF, Stat(1, 0, "x"));
  EXPECT(__WASI_ERRNO_BADF, Stat(NOT_OPEN, 0, "x"));
}

static __wasi_errno_t SetTimes(__wasi_fd_t folder, __wasi_lookupflags_t follow, const char* path,
                               __wasi_timestamp_t time, __wasi_fstflags_t which) {
  return __wasi_path_filestat_set_times(folder, follow, path, time, time, which);
}

void Test_path_filestat_set_times(void) {
  const __wasi_fd_t folder = FolderWithLinks("path_filestat_set_times");
  const __wasi_fstflags_t both = __WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_MTIM;
  EXPECT_OK(SetTimes(folder, 0, "inner/file", 1000000001, both));
  EXPECT(1000000001, About(folder, "inner/file").mtim);
  EXPECT(1000000001, About(folder, "inner/file").atim);
  EXPECT_OK(SetTimes(folder, FOLLOW, "to_file", 2000000000, __WASI_FSTFLAGS_MTIM));
  EXPECT(2000000000, About(folder, "inner/file").mtim);
  EXPECT_OK(SetTimes(folder, 0, "to_file", 3000000000, __WASI_FSTFLAGS_MTIM));
  EXPECT(3000000000, About(folder, "to_file").mtim);
  EXPECT(2000000000, About(folder, "inner/file").mtim);
  EXPECT_OK(SetTimes(folder, 0, "inner/file", 0, __WASI_FSTFLAGS_MTIM_NOW));
  EXPECT_TRUE(About(folder, "inner/file").mtim > 3000000000);
  EXPECT(__WASI_ERRNO_INVAL,
         SetTimes(folder, 0, "inner/file", 0, __WASI_FSTFLAGS_MTIM | __WASI_FSTFLAGS_MTIM_NOW));
  EXPECT(__WASI_ERRNO_NOENT, SetTimes(folder, 0, "none", 0, both));
  EXPECT(__WASI_ERRNO_PERM, SetTimes(folder, FOLLOW, "out", 0, both));
  EXPECT_NO_WAY_OUT(SetTimes(folder, 0, path, 0, both));
  EXPECT(__WASI_ERRNO_PERM, SetTimes(Given(READ_ONLY), 0, READ_ONLY_FILE, 0, both));
  EXPECT(__WASI_ERRNO_BADF, SetTimes(NOT_OPEN, 0, "x", 0, both));
}

void Test_path_readlink(void) {
  const __wasi_fd_t folder = FolderWithLinks("path_readlink");
  uint8_t text[32];
  __wasi_size_t got = 0;
  EXPECT_OK(__wasi_path_readlink(folder, "to_file", text, sizeof text, &got));
  EXPECT(strlen("inner/file"), got);
  EXPECT(0, memcmp(text, "inner/file", got));
  // Where it leads does not matter.
  EXPECT_OK(__wasi_path_readlink(folder, "out", text, sizeof text, &got));
  EXPECT_OK(__wasi_path_readlink(folder, "to_file", text, 3, &got));
  EXPECT(3, got);
  EXPECT(0, memcmp(text, "inn", got));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_path_readlink(folder, "inner/file", text, 32, &got));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_readlink(folder, "none", text, 32, &got));
  EXPECT_NO_WAY_OUT(__wasi_path_readlink(folder, path, text, 32, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_readlink(NOT_OPEN, "x", text, 32, &got));
}
