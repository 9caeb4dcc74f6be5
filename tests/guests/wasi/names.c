// SPDX-License-Identifier: Apache-2.0
// Names that are given, changed and taken away.
#include <string.h>

#include "suite.h"

static __wasi_errno_t Link(__wasi_fd_t folder, const char* from, const char* to) {
  return __wasi_path_link(folder, 0, from, folder, to);
}

void Test_path_link(void) {
  const __wasi_fd_t folder = NewFolder("path_link");
  Close(NewFile(folder, "file", "text"));
  MakeFolder(folder, "inner");
  MakeLink("file", folder, "soft");
  EXPECT_OK(Link(folder, "file", "inner/hard"));
  EXPECT(2, About(folder, "file").nlink);
  EXPECT(About(folder, "file").ino, About(folder, "inner/hard").ino);
  // Of a link it is the link.
  EXPECT_OK(Link(folder, "soft", "soft_too"));
  EXPECT(__WASI_FILETYPE_SYMBOLIC_LINK, About(folder, "soft_too").filetype);
  EXPECT(__WASI_ERRNO_INVAL, __wasi_path_link(folder, FOLLOW, "soft", folder, "other"));
  EXPECT(__WASI_ERRNO_EXIST, Link(folder, "file", "inner/hard"));
  EXPECT(__WASI_ERRNO_NOENT, Link(folder, "none", "new"));
  EXPECT(__WASI_ERRNO_NOENT, Link(folder, "file", "none/new"));
  EXPECT(__WASI_ERRNO_PERM, Link(folder, "inner", "new"));
  EXPECT(__WASI_ERRNO_PERM, Link(folder, "file", "../new"));
  EXPECT(__WASI_ERRNO_PERM, Link(folder, "../x", "new"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_link(Given(READ_ONLY), 0, READ_ONLY_FILE, folder, "new"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_link(folder, 0, "file", Given(READ_ONLY), "new"));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_link(folder, 0, "file", NOT_OPEN, "new"));
}

void Test_path_symlink(void) {
  const __wasi_fd_t folder = NewFolder("path_symlink");
  Close(NewFile(folder, "file", "text"));
  EXPECT_OK(__wasi_path_symlink("file", folder, "link"));
  EXPECT_OK(TryOpen(folder, FOLLOW, "link", 0, TO_READ, 0));
  EXPECT_OK(__wasi_path_symlink("none", folder, "dangling"));
  // It may lead out, but not be followed there.
  EXPECT_OK(__wasi_path_symlink("../../etc/passwd", folder, "out"));
  EXPECT(__WASI_ERRNO_PERM, TryOpen(folder, FOLLOW, "out", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_symlink("/etc/passwd", folder, "absolute"));
  EXPECT(__WASI_ERRNO_EXIST, __wasi_path_symlink("file", folder, "link"));
  EXPECT(__WASI_ERRNO_EXIST, __wasi_path_symlink("file", folder, "file"));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_symlink("file", folder, "none/link"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_symlink("file", folder, "../link"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_symlink("file", Given(READ_ONLY), "link"));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_symlink("file", NOT_OPEN, "link"));
}

static __wasi_errno_t Rename(__wasi_fd_t folder, const char* from, const char* to) {
  return __wasi_path_rename(folder, from, folder, to);
}

static void CheckReplacing(__wasi_fd_t folder) {
  Close(NewFile(folder, "one", "first"));
  Close(NewFile(folder, "two", "second"));
  MakeFolder(folder, "empty");
  MakeFolder(folder, "full");
  Close(NewFile(folder, "full/file", ""));
  EXPECT_OK(Rename(folder, "one", "two"));
  const __wasi_fd_t file = Open(folder, "two", 0, TO_READ);
  ExpectText(file, "first");
  EXPECT(__WASI_ERRNO_NOENT, TryOpen(folder, 0, "one", 0, TO_READ, 0));
  EXPECT(__WASI_ERRNO_ISDIR, Rename(folder, "two", "empty"));
  EXPECT(__WASI_ERRNO_NOTDIR, Rename(folder, "empty", "two"));
  EXPECT(__WASI_ERRNO_NOTEMPTY, Rename(folder, "empty", "full"));
  EXPECT_OK(Rename(folder, "full", "empty"));
  EXPECT(__WASI_FILETYPE_REGULAR_FILE, About(folder, "empty/file").filetype);
  // What is open stays what it is.
  EXPECT_OK(Rename(folder, "two", "empty/two"));
  ExpectText(file, "first");
}

void Test_path_rename(void) {
  const __wasi_fd_t folder = NewFolder("path_rename");
  CheckReplacing(folder);
  MakeLink("none", folder, "link");
  EXPECT_OK(Rename(folder, "link", "moved"));
  EXPECT(__WASI_FILETYPE_SYMBOLIC_LINK, About(folder, "moved").filetype);
  EXPECT_OK(Rename(folder, "moved", "moved"));
  EXPECT(__WASI_ERRNO_NOENT, Rename(folder, "none", "new"));
  EXPECT(__WASI_ERRNO_INVAL, Rename(folder, "empty", "empty/below"));
  EXPECT(__WASI_ERRNO_PERM, Rename(folder, "moved", "../moved"));
  EXPECT(__WASI_ERRNO_PERM, Rename(folder, "../x", "new"));
  EXPECT(__WASI_ERRNO_PERM, Rename(folder, "moved", "/moved"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_rename(folder, "moved", Given(READ_ONLY), "new"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_rename(Given(READ_ONLY), READ_ONLY_FILE, folder, "new"));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_rename(folder, "moved", NOT_OPEN, "new"));
}

void Test_path_unlink_file(void) {
  const __wasi_fd_t folder = NewFolder("path_unlink_file");
  const __wasi_fd_t file = NewFile(folder, "file", "text");
  MakeFolder(folder, "inner");
  MakeLink("inner", folder, "link");
  EXPECT_OK(__wasi_path_unlink_file(folder, "file"));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_unlink_file(folder, "file"));
  // It is there as long as it is open.
  ExpectText(file, "text");
  EXPECT_OK(__wasi_path_unlink_file(folder, "link"));
  EXPECT(__WASI_FILETYPE_DIRECTORY, About(folder, "inner").filetype);
  EXPECT(__WASI_ERRNO_ISDIR, __wasi_path_unlink_file(folder, "inner"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_unlink_file(folder, "../../etc/passwd"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_unlink_file(folder, "/etc/passwd"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_unlink_file(Given(READ_ONLY), READ_ONLY_FILE));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_unlink_file(NOT_OPEN, "file"));
}
