// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/module/image_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/module/looks_like.h"
#include "plugins/wasm/module/sha256.h"

namespace gantry::wasm {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;

const char* TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFSOCK:
      return "a socket";
    default:
      return "no regular file";
  }
}

/// A view of a sealed file.
class Mapping {
 public:
  Mapping(const UniqueFd& file, size_t size)
      : size_(size), at_(mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0)) {}

  ~Mapping() {
    if (at_ != MAP_FAILED) {
      munmap(at_, size_);
    }
  }

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  explicit operator bool() const { return at_ != MAP_FAILED; }

  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  size_t size_;
  void* at_;
};

}  // namespace

Result<ImageFile> OpenImageFile(const UniqueFd& place, const std::string& shown) {
  struct stat info{};
  if (fstat(place.get(), &info) != 0) {
    return FailErrno(errno, "look at '{}'", shown);
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(Code::kFailedPrecondition, "'{}': it is {}; a program is a regular file", shown,
                TypeOf(info.st_mode));
  }
  const std::string path = Format("/proc/self/fd/{}", place.get());
  ImageFile file{.file = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)),
                 .size = static_cast<uint64_t>(info.st_size),
                 .mode = info.st_mode,
                 .head = {}};
  if (!file.file) {
    return FailErrno(errno, "open '{}'", shown);
  }
  auto head = ReadAt(file.file.get(), 0, kHeadBytes);
  if (!head) {
    return std::unexpected(std::move(head).error().Within(Format("read '{}'", shown)));
  }
  file.head = std::move(*head);
  return file;
}

Result<ImageFile> OpenImageFile(int root, const std::string& path, const std::string& shown) {
  GANTRY_TRY(const UniqueFd place, container::OpenInRoot(root, path));
  return OpenImageFile(place, shown);
}

Result<ModuleBytes> ReadModule(const ImageFile& file, uint64_t most, const std::string& shown) {
  if (file.size > most) {
    return Fail(Code::kFailedPrecondition,
                "'{}': it has {} bytes, and a module may have {} (option 'max_module_bytes')",
                shown, file.size, most);
  }
  GANTRY_TRY(const UniqueFd copy, CreateSealableMemfd("wasm-module", MemfdUse::kRead));
  ModuleBytes module;
  Sha256 hash;
  while (module.size <= most) {
    auto chunk = ReadAt(file.file.get(), module.size, kChunkBytes);
    if (!chunk) {
      return std::unexpected(std::move(chunk).error().Within(Format("read '{}'", shown)));
    }
    if (chunk->empty()) {
      break;
    }
    GANTRY_CHECK_OK(WriteAt(copy.get(), module.size, *chunk));
    hash.Add(*chunk);
    module.size += chunk->size();
  }
  if (module.size != file.size) {
    return Fail(Code::kFailedPrecondition, "'{}': it changes while it is read", shown);
  }
  GANTRY_CHECK_OK(SealMemfd(copy.get()));
  GANTRY_TRY(module.file, ReopenForReading(copy));
  module.digest = hash.Finish();
  return module;
}

Result<Shape> CheckModule(const ModuleBytes& module, const std::string& shown) {
  if (module.size == 0) {
    return Fail(Code::kInvalidArgument, "'{}': it is empty", shown);
  }
  const Mapping mapping(module.file, module.size);
  if (!mapping) {
    return FailErrno(errno, "map '{}'", shown);
  }
  auto shape = WalkSections(mapping.bytes());
  if (!shape) {
    return std::unexpected(std::move(shape).error().Within(Format("'{}'", shown)));
  }
  return shape;
}

}  // namespace gantry::wasm
