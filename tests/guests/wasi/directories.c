// SPDX-License-Identifier: Apache-2.0
// Directories: made, read in pieces, removed.
#include <stdio.h>
#include <string.h>

#include "suite.h"

enum { kFiles = 500 };

static uint8_t seen[kFiles];
static int dots;

// What an entry is, by its name.
static void Note(const __wasi_dirent_t* entry, const char* name) {
  int number = -1;
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
    EXPECT(__WASI_FILETYPE_DIRECTORY, entry->d_type);
    ++dots;
  } else if (strcmp(name, "link") == 0) {
    EXPECT(__WASI_FILETYPE_SYMBOLIC_LINK, entry->d_type);
    ++dots;
  } else if (sscanf(name, "file%d", &number) == 1 && number >= 0 && number < kFiles) {
    EXPECT(__WASI_FILETYPE_REGULAR_FILE, entry->d_type);
    ++seen[number];
  } else {
    EXPECT(-1, number);
  }
}

// The entries that are whole in a buffer; the cookie behind the last of them.
static __wasi_dircookie_t NoteAll(const uint8_t* buffer, __wasi_size_t size,
                                  __wasi_dircookie_t cookie) {
  __wasi_dirent_t entry;
  for (__wasi_size_t at = 0; at + sizeof entry <= size; at += sizeof entry + entry.d_namlen) {
    char name[64] = "";
    memcpy(&entry, buffer + at, sizeof entry);
    if (at + sizeof entry + entry.d_namlen > size || entry.d_namlen >= sizeof name) {
      break;
    }
    memcpy(name, buffer + at + sizeof entry, entry.d_namlen);
    Note(&entry, name);
    cookie = entry.d_next;
  }
  return cookie;
}

static void ReadAll(__wasi_fd_t folder, __wasi_dircookie_t cookie) {
  uint8_t buffer[300];
  __wasi_size_t got = sizeof buffer;
  while (got == sizeof buffer) {
    got = 0;
    EXPECT_OK(__wasi_fd_readdir(folder, buffer, sizeof buffer, cookie, &got));
    const __wasi_dircookie_t next = NoteAll(buffer, got, cookie);
    EXPECT_TRUE(next != cookie || got < sizeof buffer);
    cookie = next;
  }
}

static int CountSeen(void) {
  int count = 0;
  for (int i = 0; i < kFiles; ++i) {
    count += seen[i] == 1 ? 1 : 0;
  }
  return count;
}

void Test_fd_readdir(void) {
  const __wasi_fd_t folder = NewFolder("fd_readdir");
  MakeLink("file0", folder, "link");
  for (int i = 0; i < kFiles; ++i) {
    char name[16];
    snprintf(name, sizeof name, "file%d", i);
    Close(NewFile(folder, name, ""));
  }
  // Each once, however small the pieces are.
  ReadAll(folder, __WASI_DIRCOOKIE_START);
  EXPECT(kFiles, CountSeen());
  EXPECT(3, dots);
  // And again, from the beginning and from somewhere.
  memset(seen, 0, sizeof seen);
  ReadAll(folder, __WASI_DIRCOOKIE_START);
  EXPECT(kFiles, CountSeen());
  memset(seen, 0, sizeof seen);
  dots = 0;
  ReadAll(folder, 103);
  EXPECT(kFiles + 3 - 103, CountSeen() + dots);
  // An entry that has no room is cut off.
  uint8_t buffer[8];
  __wasi_size_t got = 0;
  EXPECT_OK(__wasi_fd_readdir(folder, buffer, sizeof buffer, 0, &got));
  EXPECT(sizeof buffer, got);
  EXPECT_OK(__wasi_fd_readdir(folder, buffer, sizeof buffer, kFiles + 100, &got));
  EXPECT(0, got);
  const __wasi_fd_t file = Open(folder, "file0", 0, TO_READ);
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_readdir(file, buffer, sizeof buffer, 0, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_readdir(0, buffer, sizeof buffer, 0, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_fd_readdir(NOT_OPEN, buffer, sizeof buffer, 0, &got));
}

void Test_path_create_directory(void) {
  const __wasi_fd_t folder = NewFolder("path_create_directory");
  Close(NewFile(folder, "file", ""));
  EXPECT_OK(__wasi_path_create_directory(folder, "one"));
  EXPECT_OK(__wasi_path_create_directory(folder, "one/two"));
  EXPECT_OK(__wasi_path_create_directory(folder, "one/../three/"));
  EXPECT(__WASI_FILETYPE_DIRECTORY, About(folder, "one/two").filetype);
  EXPECT(__WASI_ERRNO_EXIST, __wasi_path_create_directory(folder, "one"));
  EXPECT(__WASI_ERRNO_EXIST, __wasi_path_create_directory(folder, "file"));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_create_directory(folder, "none/two"));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_create_directory(folder, ""));
  EXPECT(__WASI_ERRNO_NOTDIR, __wasi_path_create_directory(folder, "file/two"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_create_directory(folder, "../out"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_create_directory(folder, "/out"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_create_directory(Given(READ_ONLY), "new"));
  char longest[300];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  EXPECT(__WASI_ERRNO_NAMETOOLONG, __wasi_path_create_directory(folder, longest));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_create_directory(1, "new"));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_create_directory(NOT_OPEN, "new"));
}

void Test_path_remove_directory(void) {
  const __wasi_fd_t folder = NewFolder("path_remove_directory");
  MakeFolder(folder, "one");
  MakeFolder(folder, "one/two");
  Close(NewFile(folder, "file", ""));
  MakeLink("one", folder, "link");
  EXPECT(__WASI_ERRNO_NOTEMPTY, __wasi_path_remove_directory(folder, "one"));
  EXPECT_OK(__wasi_path_remove_directory(folder, "one/two"));
  EXPECT(__WASI_ERRNO_NOTDIR, __wasi_path_remove_directory(folder, "link"));
  EXPECT(__WASI_ERRNO_INVAL, __wasi_path_remove_directory(folder, "one/"));
  EXPECT_OK(__wasi_path_remove_directory(folder, "one"));
  EXPECT(__WASI_ERRNO_NOENT, __wasi_path_remove_directory(folder, "one"));
  EXPECT(__WASI_ERRNO_NOTDIR, __wasi_path_remove_directory(folder, "file"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_remove_directory(folder, "../fd_readdir"));
  EXPECT(__WASI_ERRNO_PERM, __wasi_path_remove_directory(Given(READ_ONLY), "new"));
  EXPECT(__WASI_ERRNO_BADF, __wasi_path_remove_directory(NOT_OPEN, "one"));
}
