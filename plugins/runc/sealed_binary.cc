// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/sealed_binary.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::runc {
namespace {

constexpr off_t kMaxBytes = 64 << 20;

/// One version of a file.
struct Version {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  timespec changed = {};

  bool operator==(const Version& other) const {
    return device == other.device && inode == other.inode && bytes == other.bytes &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
};

struct Entry {
  Version version;
  std::shared_ptr<const SealedBinary> copy;
};

struct Cache {
  /// Workers of all containers come here.
  Mutex mutex;
  std::map<std::string, Entry> entries GANTRY_GUARDED_BY(mutex);
};

Cache& SharedCache() {
  static Cache cache;
  return cache;
}

Version VersionOf(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size, info.st_ctim};
}

bool IsElf(int fd) {
  std::array<char, 4> magic{};
  return pread(fd, magic.data(), magic.size(), 0) == 4 && memcmp(magic.data(), "\177ELF", 4) == 0;
}

std::shared_ptr<const SealedBinary> Copy(int file, off_t bytes) {
  Result<UniqueFd> copy = CreateSealableMemfd("oci-runtime", MemfdUse::kExecute);
  if (!copy) {
    return nullptr;
  }
  for (off_t at = 0; at < bytes;) {
    if (sendfile(copy->get(), file, &at, static_cast<size_t>(bytes - at)) <= 0) {
      return nullptr;
    }
  }
  if (fchmod(copy->get(), 0500) != 0 || !SealMemfd(copy->get())) {
    return nullptr;
  }
  return std::make_shared<const SealedBinary>(std::move(*copy));
}

bool KnownToSealItself(std::string_view binary) {
  const std::string_view name = binary.substr(binary.rfind('/') + 1);
  return name == "crun" || name == "runc";
}

}  // namespace

std::shared_ptr<const SealedBinary> Seal(const std::string& binary) {
  if (!KnownToSealItself(binary)) {
    return nullptr;
  }
  const UniqueFd file(open(binary.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat info = {};
  if (!file || fstat(file.get(), &info) != 0) {
    return nullptr;
  }
  Cache& cache = SharedCache();
  const MutexLock lock(cache.mutex);
  Entry& entry = cache.entries[binary];
  if (entry.version != VersionOf(info)) {
    const bool fit = S_ISREG(info.st_mode) && info.st_size <= kMaxBytes && IsElf(file.get());
    entry = {VersionOf(info), fit ? Copy(file.get(), info.st_size) : nullptr};
  }
  return entry.copy;
}

void ForgetSealed(const std::string& binary) {
  Cache& cache = SharedCache();
  const MutexLock lock(cache.mutex);
  cache.entries[binary].copy.reset();
}

}  // namespace gantry::runc
