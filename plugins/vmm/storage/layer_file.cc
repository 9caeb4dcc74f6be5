// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/layer_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/ask_program.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMkfs = "/usr/sbin/mke2fs";

/// Of each `directory` its own: another one's sandboxes are none of ours.
std::string FolderOf(const StorageRequest& request) {
  std::string name = fs::path(request.directory).parent_path();
  std::ranges::replace(name, '/', '-');
  return Format("{}/layers{}", request.options.layers_directory, name);
}

/// Source: Linux, Documentation/filesystems/ext4/super.rst.
bool IsExt4(const UniqueFd& file) {
  constexpr off_t kPlace = 1024 + 0x38;
  std::array<unsigned char, 2> magic{};
  return ::pread(file.get(), magic.data(), magic.size(), kPlace) == 2 && magic[0] == 0x53 &&
         magic[1] == 0xEF;
}

}  // namespace

std::string LayerFileOf(const StorageRequest& request, uint32_t number) {
  return Format("{}/{}.{}", FolderOf(request), fs::path(request.directory).filename().string(),
                number);
}

Status MakeLayerFile(const std::string& file, uint32_t mib) {
  constexpr mode_t kMode = 0600;
  std::error_code failed;
  const fs::path folder = fs::path(file).parent_path();
  fs::create_directories(folder.parent_path(), failed);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}', of the option 'layers_directory'", folder.string());
  }
  const UniqueFd made(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!made || ::ftruncate(made.get(), off_t{mib} << 20) != 0) {
    return FailErrno(errno, "make the layer '{}'", file);
  }
  GANTRY_TRY(const std::string said,
             AskProgram({.program = kMkfs,
                         .arguments = {"-q", "-F", "-t", "ext4", "-m", "0", "-O",
                                       "^has_journal,^resize_inode", "-E",
                                       "lazy_itable_init=1,nodiscard", file},
                         .with_errors = true,
                         .limit = std::chrono::seconds(30)}));
  if (!IsExt4(made)) {
    return Fail(
        Code::kFailedPrecondition,
        "make the layer '{}' by {} (of the package e2fsprogs): it is no ext4; it said: '{}'", file,
        kMkfs, said.substr(0, 200));
  }
  return {};
}

void SweepLayerFiles(const StorageRequest& request) {
  constexpr size_t kMostNames = 65536;
  const std::string folder = FolderOf(request);
  const fs::path sandboxes = fs::path(request.directory).parent_path();
  const auto names = ListDirectory(folder, kMostNames);
  if (request.options.layers_directory.empty() || !names) {
    return;
  }
  for (const std::string& name : *names) {
    if (!Exists(sandboxes / name.substr(0, name.rfind('.')))) {
      IgnoreError(RemoveFile(Format("{}/{}", folder, name)), "the next sandbox tries again");
    }
  }
}

}  // namespace gantry::vmm
