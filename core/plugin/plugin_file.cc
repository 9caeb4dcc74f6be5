// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/plugin_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include <gantry/unique_fd.h>

namespace gantry::plugin {

namespace {

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

}  // namespace

Status CheckPluginFile(const std::string& path) {
  if (!path.starts_with('/') || path.contains('\0')) {
    return Fail(Code::kInvalidArgument,
                "load plugin '{}': not an absolute path: write it in full in the configuration",
                path);
  }
  // O_NONBLOCK: whatever it is, a fifo for example, opening it must not wait.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
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
  const std::string directory = path.substr(0, std::max<size_t>(path.rfind('/'), 1));
  struct stat directory_info{};
  if (stat(directory.c_str(), &directory_info) < 0) {
    return FailErrno(errno, "load plugin '{}'", path);
  }
  GANTRY_CHECK_OK(CheckOwner(directory_info, "directory", directory));
  return CheckElf(fd.get(), path);
}

}  // namespace gantry::plugin
