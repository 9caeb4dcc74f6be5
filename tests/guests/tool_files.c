// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

static int ByName(const void* left, const void* right) {
  return strcmp(*(char* const*)left, *(char* const*)right);
}

int List(const char* directory) {
  DIR* open = opendir(directory);
  if (open == NULL) {
    return errno;
  }
  char* names[1024];
  size_t count = 0;
  for (struct dirent* each; count < 1024 && (each = readdir(open)) != NULL;) {
    if (strcmp(each->d_name, ".") != 0 && strcmp(each->d_name, "..") != 0) {
      names[count++] = strdup(each->d_name);
    }
  }
  closedir(open);
  qsort(names, count, sizeof *names, ByName);
  for (size_t i = 0; i < count; ++i) {
    puts(names[i]);
  }
  return 0;
}

int Make(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (file < 0) {
    return errno;
  }
  const int failed = write(file, "made\n", 5) == 5 ? 0 : errno;
  close(file);
  return failed;
}

int Read(const char* path) {
  const int file = open(path, O_RDONLY);
  if (file < 0) {
    return errno;
  }
  char bytes[4096];
  ssize_t got;
  while ((got = read(file, bytes, sizeof bytes)) > 0) {
    fwrite(bytes, 1, (size_t)got, stdout);
  }
  const int failed = got < 0 ? errno : 0;
  close(file);
  return failed;
}

static int Fails(const char* what) {
  const int failed = errno;
  fprintf(stderr, "%s: %s\n", what, strerror(failed));
  return failed;
}

int Files(const char* directory) {
  char first[512], second[512], link[512], folder[512];
  snprintf(first, sizeof first, "%s/first", directory);
  snprintf(second, sizeof second, "%s/folder/second", directory);
  snprintf(folder, sizeof folder, "%s/folder", directory);
  snprintf(link, sizeof link, "%s/link", directory);
  const int made = Make(first);
  if (made != 0) {
    return made;
  }
  if (mkdir(folder, 0755) != 0) {
    return Fails("mkdir");
  }
  if (rename(first, second) != 0) {
    return Fails("rename");
  }
  if (symlink("folder/second", link) != 0) {
    return Fails("symlink");
  }
  const int read = Read(link);
  if (read != 0) {
    return read;
  }
  if (truncate(second, 2) != 0) {
    return Fails("truncate");
  }
  struct stat about;
  if (stat(link, &about) != 0) {
    return Fails("stat");
  }
  printf("%lld bytes\n", (long long)about.st_size);
  const int listed = List(directory);
  if (listed != 0) {
    return listed;
  }
  if (unlink(link) != 0) {
    return Fails("unlink link");
  }
  if (unlink(second) != 0) {
    return Fails("unlink second");
  }
  if (rmdir(folder) != 0) {
    return Fails("rmdir");
  }
  return 0;
}

// Of more than one call takes.
enum { kStreamed = 200000 };

static int AwaitFile(int file, short events) {
  struct pollfd asked = {file, events, 0};
  return poll(&asked, 1, -1) == 1 ? 0 : Fails("poll");
}

static int FillStream(int file, const char* bytes) {
  for (ssize_t done = 0; done < kStreamed;) {
    const int failed = AwaitFile(file, POLLOUT);
    if (failed != 0) {
      return failed;
    }
    const ssize_t put = write(file, bytes + done, (size_t)(kStreamed - done));
    if (put < 0) {
      return Fails("write");
    }
    done += put;
  }
  return 0;
}

// To its end; one byte more than was written would be found, too.
static int ReadStream(int file, char* bytes, ssize_t* size) {
  for (*size = 0; *size <= kStreamed;) {
    const int failed = AwaitFile(file, POLLIN);
    if (failed != 0) {
      return failed;
    }
    const ssize_t got = read(file, bytes + *size, (size_t)(kStreamed + 1 - *size));
    if (got < 0) {
      return Fails("read");
    }
    if (got == 0) {
      break;
    }
    *size += got;
  }
  return 0;
}

int Stream(const char* path) {
  static char written[kStreamed], back[kStreamed + 1];
  for (int i = 0; i < kStreamed; ++i) {
    written[i] = (char)(i % 251);
  }
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0644);
  if (file < 0) {
    return Fails("open");
  }
  int failed = FillStream(file, written);
  if (failed == 0 && lseek(file, 0, SEEK_SET) != 0) {
    failed = Fails("lseek");
  }
  ssize_t size = 0;
  if (failed == 0) {
    failed = ReadStream(file, back, &size);
  }
  close(file);
  if (failed != 0) {
    return failed;
  }
  const int same = size == kStreamed && memcmp(written, back, kStreamed) == 0;
  printf("%zd bytes, %s\n", size, same ? "the same" : "others");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
