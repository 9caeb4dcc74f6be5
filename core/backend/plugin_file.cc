// SPDX-License-Identifier: Apache-2.0
#include "core/backend/plugin_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ranges>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"

namespace gantry::backend {

namespace {

constexpr size_t kMaxMapsBytes = size_t{16} << 20;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "which ELF machine is this?"
#endif

Status CheckOwner(const struct stat& info, std::string_view what, const std::string& path) {
  if (info.st_uid != 0 && info.st_uid != geteuid()) {
    return Fail(Code::kPermissionDenied,
                "load plugin: {} '{}' belongs to uid {}: a plugin runs as root, so make it root's "
                "(chown root)",
                what, path, info.st_uid);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(Code::kPermissionDenied,
                "load plugin: others may write to {} '{}' (mode {:04o}): take that away "
                "(chmod go-w)",
                what, path, info.st_mode & 07777);
  }
  return {};
}

Status CheckElf(int fd, const std::string& path) {
  Elf64_Ehdr header{};
  const ssize_t got = pread(fd, &header, sizeof(header), 0);
  if (got != static_cast<ssize_t>(sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Fail(Code::kInvalidArgument,
                "load plugin '{}': not an ELF file: install the plugin's .so file there", path);
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return Fail(Code::kInvalidArgument,
                "load plugin '{}': built for another machine (ELF machine {}, this one is {}): "
                "install the plugin's build for this one",
                path, header.e_machine, kMachine);
  }
  if (header.e_type != ET_DYN) {
    return Fail(Code::kInvalidArgument,
                "load plugin '{}': an ELF file, but no shared object: link it with -shared", path);
  }
  return {};
}

/// A page of a file that is mapped.
class MappedPage {
 public:
  explicit MappedPage(int fd) : at_(mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0)) {}

  MappedPage(const MappedPage&) = delete;
  MappedPage& operator=(const MappedPage&) = delete;

  ~MappedPage() {
    if (at_ != MAP_FAILED) {
      munmap(at_, 1);
    }
  }

  /// Null: it could not be mapped.
  const void* at() const { return at_ == MAP_FAILED ? nullptr : at_; }

 private:
  void* at_;
};

/// Device and inode of what is mapped at `address`; empty where nothing is. Source: proc(5),
/// /proc/PID/maps: `START-END PERMS OFFSET DEVICE INODE PATH`.
std::string FileAt(std::string_view maps, const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (const auto part : std::views::split(maps, '\n')) {
    const std::string line(std::string_view{part});
    uintptr_t start = 0;
    uintptr_t end = 0;
    std::array<char, 32> device{};
    std::array<char, 32> inode{};
    if (std::sscanf(line.c_str(), "%zx-%zx %*s %*s %31s %31s", &start, &end, device.data(),
                    inode.data()) == 4 &&
        start <= wanted && wanted < end) {
      return Format("{} {}", device.data(), inode.data());
    }
  }
  return {};
}

std::string DirectoryOf(const std::string& path) {
  return path.substr(0, std::max<size_t>(path.rfind('/'), 1));
}

Status CheckDirectory(const std::string& directory, const std::string& path) {
  struct stat info{};
  if (stat(directory.c_str(), &info) < 0) {
    return FailErrno(errno, "load plugin '{}'", path);
  }
  return CheckOwner(info, "directory", directory);
}

}  // namespace

Result<UniqueFd> OpenPluginFile(const std::string& path) {
  if (!path.starts_with('/') || path.contains('\0')) {
    return Fail(Code::kInvalidArgument,
                "load plugin '{}': not an absolute path: write it in full in the configuration",
                path);
  }
  // O_NONBLOCK: whatever it is, a fifo for example, opening it must not wait.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Fail(Code::kNotFound,
                  "load plugin '{}': no such file: install the plugin, or correct the "
                  "configuration's backends",
                  path);
    }
    return FailErrno(errno, "load plugin '{}'", path);
  }
  struct stat info{};
  if (fstat(fd.get(), &info) < 0) {
    return FailErrno(errno, "load plugin '{}'", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "load plugin '{}': not a regular file", path);
  }
  GANTRY_CHECK_OK(CheckOwner(info, "file", path));
  GANTRY_CHECK_OK(CheckDirectory(DirectoryOf(path), path));
  // Where links have led to.
  GANTRY_TRY(const std::string real, ReadLink(Format("/proc/self/fd/{}", fd.get())));
  if (real != path) {
    GANTRY_CHECK_OK(CheckDirectory(DirectoryOf(real), path));
  }
  GANTRY_CHECK_OK(CheckElf(fd.get(), path));
  return fd;
}

Status CheckLoaded(const UniqueFd& file, const void* address, const std::string& path) {
  // Compared by what the kernel calls both here: stat(2) calls files of some file systems
  // otherwise.
  const MappedPage page(file.get());
  GANTRY_TRY(const std::string maps, ReadFile("/proc/self/maps", kMaxMapsBytes));
  const std::string checked = page.at() == nullptr ? std::string() : FileAt(maps, page.at());
  if (checked.empty()) {
    return Fail(Code::kInternal, "load plugin '{}': its file cannot be mapped for a look", path);
  }
  if (checked != FileAt(maps, address)) {
    return Fail(Code::kAborted,
                "load plugin '{}': another file was loaded than was looked at: it was replaced "
                "meanwhile; restart gantry, and see who may change a directory of that path",
                path);
  }
  return {};
}

}  // namespace gantry::backend
