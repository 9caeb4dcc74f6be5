// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/image.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxVersions = 4096;

/// `option` is what names it; `chosen`, where the options name none, lies in `directory`.
Result<std::string> FindFile(const std::string& option, const std::string& chosen,
                             const std::string& directory) {
  // In a VMM's own root there is but the way to the file: none by which `..` leads back.
  std::string path =
      std::filesystem::path(chosen.empty() ? Format("{}/{}", directory, option) : chosen)
          .lexically_normal()
          .string();
  if (access(path.c_str(), R_OK) == 0) {
    return path;
  }
  const int error = errno;
  if (chosen.empty()) {
    return Fail(Code::kFailedPrecondition,
                "find the guest's {} '{}': {}: install the guest image (tools/vmm/make-image "
                "makes it), or name a file by the option '{}'",
                option, path, ErrnoName(error), option);
  }
  return Fail(Code::kFailedPrecondition,
              "find the guest's {} '{}' (option '{}'): {}: correct the option, or leave it out "
              "for the installed one",
              option, path, option, ErrnoName(error));
}

/// Of a kernel that says which machine it is for: as an ELF file, or as those of AArch64 and RISC-V
/// begin. Source: elf(5); Linux, Documentation/arch/arm64/booting.rst,
/// arch/riscv/boot-image-header.rst.
Status CheckKernel(const std::string& path) {
  constexpr size_t kMachine = 18;
  constexpr size_t kMagic = 56;
  std::array<char, 64> head{};
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::pread(file.get(), head.data(), head.size(), 0) < 0) {
    return FailErrno(errno, "read the guest's kernel '{}'", path);
  }
  const std::string_view bytes(head.data(), head.size());
  const auto machine = static_cast<unsigned char>(head[kMachine]);
  const bool is_elf = bytes.starts_with(
      "\x7f"
      "ELF");
  const std::string_view magic = bytes.substr(kMagic, 4);
  if ((is_elf && machine != EM_X86_64) || magic == "ARM\x64" || magic == "RSC\x05") {
    return Fail(Code::kFailedPrecondition,
                "the guest's kernel '{}' is one of another machine: name one of x86-64 by the "
                "option 'kernel'",
                path);
  }
  return {};
}

/// In one line.
std::string VersionsIn(const std::string& directory) {
  std::string text = ReadFile(directory + "/versions", kMaxVersions).value_or(std::string());
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  std::string line;
  for (const char c : text) {
    line += c == '\n' ? std::string(", ") : std::string(1, c >= ' ' && c <= '~' ? c : '?');
  }
  return line;
}

}  // namespace

Result<GuestImage> FindImage(const VmmOptions& options, const std::string& directory) {
  GuestImage image;
  GANTRY_TRY(image.kernel, FindFile("kernel", options.kernel, directory));
  GANTRY_CHECK_OK(CheckKernel(image.kernel));
  GANTRY_TRY(image.initrd, FindFile("initrd", options.initrd, directory));
  if (options.kernel.empty() && options.initrd.empty()) {
    image.versions = VersionsIn(directory);
  }
  return image;
}

std::string InstalledImages() {
  // Read once at start-up, before anyone could change the environment.
  const char* const chosen = std::getenv("GANTRY_VMM_IMAGE");  // NOLINT(concurrency-mt-unsafe)
  if (chosen != nullptr && *chosen == '/') {
    return chosen;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&InstalledImages), &info) == 0 ||
      info.dli_fname == nullptr) {
    return "/usr/libexec/gantry/vmm";
  }
  // LIBEXEC/gantry/plugins/libgantry_vmm.so
  const std::string file = info.dli_fname;
  const std::string plugins = file.substr(0, file.find_last_of('/'));
  return plugins + "/vmm";
}

}  // namespace gantry::vmm
