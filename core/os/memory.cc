// SPDX-License-Identifier: Apache-2.0
#include "core/os/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace gantry::os {
namespace {

constexpr int kBlockThreshold = 64 << 10;

/// Read-only segments only: what is written to exists nowhere else.
int ReleaseSegments(dl_phdr_info* info, size_t /*size*/, void* /*data*/) {
  const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (name.starts_with("linux-vdso")) {
    return 0;
  }
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // The loader tells numbers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void SaveMemory() {
  // Called before the first thread. NOLINTBEGIN(concurrency-mt-unsafe)
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, kBlockThreshold);
  mallopt(M_MMAP_THRESHOLD, kBlockThreshold);
  // NOLINTEND(concurrency-mt-unsafe)
}

void AddMemoryTunables(std::vector<std::string>& environment) {
  const auto is_tunables = [](const std::string& entry) {
    return entry.starts_with("GLIBC_TUNABLES=");
  };
  if (std::ranges::none_of(environment, is_tunables)) {
    environment.emplace_back("GLIBC_TUNABLES=glibc.malloc.tcache_count=0");
  }
}

void ReleaseMemory() {
  malloc_trim(0);
  dl_iterate_phdr(ReleaseSegments, nullptr);
}

}  // namespace gantry::os
