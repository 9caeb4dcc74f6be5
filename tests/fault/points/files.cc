// SPDX-License-Identifier: Apache-2.0
//
// Points: files, folders, mounts.
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "tests/fault/points/point.h"

namespace gantry::fault {
namespace {

/// Of the kernel's files, which there are many of, one stands for all.
std::string_view ReadObjectOf(std::string_view path) {
  for (const std::string_view kernel : {"/sys/fs/cgroup", "/proc"}) {
    if (path.starts_with(kernel)) {
      return kernel;
    }
  }
  return ObjectOf(path);
}

bool OpenFails(const char* path, int flags) {
  const bool makes = (flags & (O_CREAT | O_TMPFILE)) != 0 && (flags & O_DIRECTORY) == 0;
  return makes ? Fails("create", ObjectOf(path), kEffect | kSpace | kDescriptor)
               : Fails("open", ReadObjectOf(path), kDescriptor);
}

/// A fifo's other end sees that it was opened.
int Opened(int fd, const char* path) {
  struct stat info{};
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
    Pass("opened", ObjectOf(path), kEffect);
  }
  return fd;
}

mode_t ModeOf(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

/// Whether writing to it changes something: not a stream, not what is only said.
/// `end`: of what is written, where that is known.
bool WriteFails(int fd, off_t end = -1) {
  struct stat info{};
  if (fd <= STDERR_FILENO || fstat(fd, &info) != 0 ||
      (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))) {
    return false;
  }
  std::array<char, 32> link;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  std::array<char, 4096> target;
  const ssize_t size = readlink(link.data(), target.data(), target.size());
  std::string_view path(target.data(), size > 0 ? static_cast<size_t>(size) : 0);
  if (path.ends_with(" (deleted)")) {
    path.remove_suffix(std::string_view(" (deleted)").size());
  }
  const std::string_view object = ObjectOf(path);
  if (S_ISFIFO(info.st_mode) && object != "exec.fifo") {
    return false;
  }
  // What a file in memory has by then needs no more of it.
  const bool within = path.starts_with("/memfd:") && end >= 0 && end <= info.st_size;
  return Fails("write", object, within ? uint32_t{kEffect} : kEffect | kSpace);
}

}  // namespace
}  // namespace gantry::fault

using gantry::fault::Fails;
using gantry::fault::kDescriptor;
using gantry::fault::kEffect;
using gantry::fault::kSpace;
using gantry::fault::ObjectOf;
using gantry::fault::Real;

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = gantry::fault::ModeOf(flags, more);
  va_end(more);
  static const auto real = Real<int (*)(const char*, int, ...)>("open");
  return gantry::fault::OpenFails(path, flags)
             ? -1
             : gantry::fault::Opened(real(path, flags, mode), path);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = gantry::fault::ModeOf(flags, more);
  va_end(more);
  static const auto real = Real<int (*)(const char*, int, ...)>("open64");
  return gantry::fault::OpenFails(path, flags)
             ? -1
             : gantry::fault::Opened(real(path, flags, mode), path);
}

int openat(int dir, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = gantry::fault::ModeOf(flags, more);
  va_end(more);
  static const auto real = Real<int (*)(int, const char*, int, ...)>("openat");
  return gantry::fault::OpenFails(path, flags)
             ? -1
             : gantry::fault::Opened(real(dir, path, flags, mode), path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = Real<decltype(&mkdir)>("mkdir");
  return Fails("mkdir", ObjectOf(path), kEffect | kSpace) ? -1 : real(path, mode);
}

int mkdirat(int dir, const char* path, mode_t mode) noexcept {
  static const auto real = Real<decltype(&mkdirat)>("mkdirat");
  return Fails("mkdir", ObjectOf(path), kEffect | kSpace) ? -1 : real(dir, path, mode);
}

char* mkdtemp(char* name) noexcept {
  static const auto real = Real<decltype(&mkdtemp)>("mkdtemp");
  return Fails("mkdir", "*", kEffect | kSpace) ? nullptr : real(name);
}

int rmdir(const char* path) noexcept {
  static const auto real = Real<decltype(&rmdir)>("rmdir");
  return Fails("rmdir", ObjectOf(path), kEffect) ? -1 : real(path);
}

int unlink(const char* path) noexcept {
  static const auto real = Real<decltype(&unlink)>("unlink");
  return Fails("unlink", ObjectOf(path), kEffect) ? -1 : real(path);
}

int unlinkat(int dir, const char* path, int flags) noexcept {
  static const auto real = Real<decltype(&unlinkat)>("unlinkat");
  const char* const verb = (flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink";
  return Fails(verb, ObjectOf(path), kEffect) ? -1 : real(dir, path, flags);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = Real<decltype(&rename)>("rename");
  return Fails("rename to", ObjectOf(to), kEffect | kSpace) ? -1 : real(from, to);
}

int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  static const auto real = Real<decltype(&renameat)>("renameat");
  return Fails("rename to", ObjectOf(to), kEffect | kSpace) ? -1 : real(from_dir, from, to_dir, to);
}

int symlink(const char* target, const char* path) noexcept {
  static const auto real = Real<decltype(&symlink)>("symlink");
  return Fails("symlink", ObjectOf(path), kEffect | kSpace) ? -1 : real(target, path);
}

int mkfifo(const char* path, mode_t mode) noexcept {
  static const auto real = Real<decltype(&mkfifo)>("mkfifo");
  return Fails("mkfifo", ObjectOf(path), kEffect | kSpace) ? -1 : real(path, mode);
}

int chmod(const char* path, mode_t mode) noexcept {
  static const auto real = Real<decltype(&chmod)>("chmod");
  return Fails("chmod", ObjectOf(path), kEffect) ? -1 : real(path, mode);
}

int mount(const char* source, const char* target, const char* type, unsigned long flags,
          const void* data) noexcept {
  static const auto real = Real<decltype(&mount)>("mount");
  return Fails("mount", ObjectOf(target), kEffect | kSpace)
             ? -1
             : real(source, target, type, flags, data);
}

int umount2(const char* target, int flags) noexcept {
  static const auto real = Real<decltype(&umount2)>("umount2");
  return Fails("umount", ObjectOf(target), kEffect) ? -1 : real(target, flags);
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto real = Real<decltype(&write)>("write");
  return gantry::fault::WriteFails(fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static const auto real = Real<decltype(&pwrite)>("pwrite");
  return gantry::fault::WriteFails(fd, at + static_cast<off_t>(size)) ? -1
                                                                      : real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static const auto real = Real<decltype(&pwrite64)>("pwrite64");
  return gantry::fault::WriteFails(fd, at + static_cast<off_t>(size)) ? -1
                                                                      : real(fd, data, size, at);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = Real<decltype(&ftruncate)>("ftruncate");
  return Fails("truncate", "", kEffect | kSpace) ? -1 : real(fd, size);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list more;
  va_start(more, request);
  void* const argument = va_arg(more, void*);
  va_end(more);
  static const auto real = Real<int (*)(int, unsigned long, ...)>("ioctl");
  if (request == TIOCSWINSZ && Fails("resize", "", kEffect)) {
    return -1;
  }
  return real(fd, request, argument);
}

}  // extern "C"
#pragma GCC visibility pop
