// SPDX-License-Identifier: Apache-2.0
// wasi.wasm NAME: the last argument is the function whose test is run, `all` of them, `list` for
// their names, `poll_input` or `no_clock`. Exits with 0 where all was as expected.
#include "suite.h"

#include <stdio.h>
#include <string.h>

static int failures;

void Compare(const char* file, int line, const char* what, long long expected, long long came) {
  if (expected != came) {
    fprintf(stderr, "%s:%d: %s: %lld, and not %lld\n", file, line, what, came, expected);
    ++failures;
  }
}

static _Noreturn void GiveUp(const char* what, const char* name, __wasi_errno_t why) {
  fprintf(stderr, "%s '%s': error %d\n", what, name, why);
  __wasi_proc_exit(1);
}

__wasi_fd_t Given(const char* name) {
  for (__wasi_fd_t fd = 3;; ++fd) {
    __wasi_prestat_t about;
    char found[256] = "";
    const __wasi_errno_t none = __wasi_fd_prestat_get(fd, &about);
    if (none != 0) {
      GiveUp("no directory is given as", name, none);
    }
    const __wasi_size_t size = about.u.dir.pr_name_len;
    if (size < sizeof found && __wasi_fd_prestat_dir_name(fd, (uint8_t*)found, size) == 0 &&
        strcmp(found, name) == 0) {
      return fd;
    }
  }
}

void MakeFolder(__wasi_fd_t folder, const char* path) {
  const __wasi_errno_t failed = __wasi_path_create_directory(folder, path);
  if (failed != 0) {
    GiveUp("make", path, failed);
  }
}

__wasi_fd_t NewFolder(const char* name) {
  char path[64];
  snprintf(path, sizeof path, "tmp/%s", name);
  MakeFolder(Given("/"), path);
  return OpenFolder(Given("/"), path);
}

__wasi_fd_t Open(__wasi_fd_t folder, const char* path, __wasi_oflags_t how, __wasi_rights_t to) {
  __wasi_fd_t file = -1;
  const __wasi_errno_t failed =
      __wasi_path_open(folder, NO_FOLLOW, path, how, to, to | TO_READ | TO_WRITE, 0, &file);
  if (failed != 0) {
    GiveUp("open", path, failed);
  }
  return file;
}

__wasi_fd_t NewFile(__wasi_fd_t folder, const char* path, const char* text) {
  const __wasi_fd_t file =
      Open(folder, path, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, TO_READ | TO_WRITE);
  __wasi_size_t put = 0;
  if (*text != '\0') {
    EXPECT_OK(Write(file, text, &put));
  }
  EXPECT(strlen(text), put);
  return file;
}

__wasi_fd_t OpenFolder(__wasi_fd_t folder, const char* path) {
  return Open(folder, path, __WASI_OFLAGS_DIRECTORY, TO_READ);
}

void MakeLink(const char* target, __wasi_fd_t folder, const char* path) {
  const __wasi_errno_t failed = __wasi_path_symlink(target, folder, path);
  if (failed != 0) {
    GiveUp("link", path, failed);
  }
}

void Close(__wasi_fd_t file) { EXPECT_OK(__wasi_fd_close(file)); }

__wasi_errno_t Read(__wasi_fd_t file, void* to, __wasi_size_t size, __wasi_size_t* got) {
  const __wasi_iovec_t buffer = {to, size};
  return __wasi_fd_read(file, &buffer, 1, got);
}

__wasi_errno_t Write(__wasi_fd_t file, const char* text, __wasi_size_t* put) {
  const __wasi_ciovec_t buffer = {(const uint8_t*)text, strlen(text)};
  return __wasi_fd_write(file, &buffer, 1, put);
}

void ExpectText(__wasi_fd_t file, const char* text) {
  char read[1024] = "";
  __wasi_iovec_t buffer = {(uint8_t*)read, sizeof read - 1};
  __wasi_size_t got = 0;
  EXPECT_OK(__wasi_fd_pread(file, &buffer, 1, 0, &got));
  EXPECT(strlen(text), got);
  EXPECT(0, memcmp(read, text, got));
}

__wasi_errno_t TryOpen(__wasi_fd_t folder, __wasi_lookupflags_t follow, const char* path,
                       __wasi_oflags_t how, __wasi_rights_t to, __wasi_fdflags_t flags) {
  __wasi_fd_t file = -1;
  const __wasi_errno_t failed = __wasi_path_open(folder, follow, path, how, to, to, flags, &file);
  if (failed == 0) {
    Close(file);
  }
  return failed;
}

__wasi_filestat_t About(__wasi_fd_t folder, const char* path) {
  __wasi_filestat_t about = {0};
  EXPECT_OK(__wasi_path_filestat_get(folder, NO_FOLLOW, path, &about));
  return about;
}

static const struct {
  const char* name;
  void (*run)(void);
} tests[] = {

#define ENTRY(name) {#name, Test_##name},
    WASI_FUNCTIONS(ENTRY)
#undef ENTRY
};

// The one that ends the program is none of them.
static void All(void) {
  for (unsigned i = 0; i < sizeof tests / sizeof *tests; ++i) {
    const int before = failures;
    if (strcmp(tests[i].name, "proc_exit") != 0) {
      tests[i].run();
      printf("%s %s\n", failures == before ? "ok" : "failed", tests[i].name);
    }
  }
}

static int Run(const char* what) {
  for (unsigned i = 0; i < sizeof tests / sizeof *tests; ++i) {
    if (strcmp(tests[i].name, what) == 0) {
      tests[i].run();
      return failures != 0;
    }
    if (strcmp(what, "list") == 0) {
      puts(tests[i].name);
    }
  }
  if (strcmp(what, "all") == 0) {
    All();
  } else if (strcmp(what, "poll_input") == 0) {
    PollInput();
  } else if (strcmp(what, "no_clock") == 0) {
    AskForNoClock();
  } else if (strcmp(what, "list") != 0) {
    fprintf(stderr, "there is no test '%s'\n", what);
    return 255;
  }
  return failures != 0;
}

int main(int argc, char** argv) { return Run(argc > 0 ? argv[argc - 1] : ""); }
