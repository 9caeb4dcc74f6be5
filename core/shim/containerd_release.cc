// SPDX-License-Identifier: Apache-2.0
//
// Reads what Go's linker writes into a program: the ELF section .go.buildinfo, of which the second
// string has the path of the main package. Only that section is read, since the program is of some
// 50 MB and every start of a container waits for this. Source: Go 1.18 and later,
// debug/buildinfo.
#include "core/shim/containerd_release.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <gantry/unique_fd.h>

namespace gantry::shim {
namespace {

constexpr size_t kMaxSections = 200;
/// What is read of the section: the path stands in its beginning.
constexpr size_t kEnough = 4096;
constexpr std::string_view kMagic = "\xff Go buildinf:";
constexpr size_t kHeaderBytes = 32;
constexpr size_t kFlagsAt = 15;
constexpr char kStringsFollow = 2;

std::string ReadAt(const UniqueFd& fd, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  const ssize_t got = pread(fd.get(), bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

template <class T>
std::optional<T> ReadAs(const UniqueFd& fd, uint64_t offset) {
  const std::string bytes = ReadAt(fd, offset, sizeof(T));
  T value{};
  if (bytes.size() != sizeof(T)) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// The beginning of the section of that name; empty where there is none.
std::string Section(const UniqueFd& fd, std::string_view name) {
  const auto header = ReadAs<Elf64_Ehdr>(fd, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr) ||
      header->e_shnum > kMaxSections || header->e_shstrndx >= header->e_shnum) {
    return "";
  }
  const auto section = [&](size_t at) {
    return ReadAs<Elf64_Shdr>(fd, header->e_shoff + at * sizeof(Elf64_Shdr));
  };
  const auto names = section(header->e_shstrndx);
  for (size_t i = 0; names && i < header->e_shnum; ++i) {
    const auto one = section(i);
    if (one &&
        ReadAt(fd, names->sh_offset + one->sh_name, name.size() + 1) == std::string(name) + '\0') {
      return ReadAt(fd, one->sh_offset, std::min<size_t>(one->sh_size, kEnough));
    }
  }
  return "";
}

/// Takes a string with its length in front, or as much of it as there is.
std::string_view TakeString(std::string_view& rest) {
  size_t size = 0;
  size_t at = 0;
  for (unsigned shift = 0; at < rest.size() && shift < 28; shift += 7) {
    const auto byte = static_cast<unsigned char>(rest[at++]);
    size |= static_cast<size_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) {
      break;
    }
  }
  const std::string_view text = rest.substr(at, size);
  rest.remove_prefix(at + text.size());
  return text;
}

}  // namespace

int ContainerdMajor(const std::string& program) {
  const UniqueFd fd(open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string info = fd ? Section(fd, ".go.buildinfo") : "";
  if (!info.starts_with(kMagic) || info.size() < kHeaderBytes ||
      (info[kFlagsAt] & kStringsFollow) == 0) {
    return 0;
  }
  std::string_view rest = std::string_view(info).substr(kHeaderBytes);
  TakeString(rest);  // Go's own version.
  const std::string_view module = TakeString(rest);
  if (module.contains("path\tgithub.com/containerd/containerd/v2/cmd/containerd\n")) {
    return 2;
  }
  return module.contains("path\tgithub.com/containerd/containerd/cmd/containerd\n") ? 1 : 0;
}

}  // namespace gantry::shim
