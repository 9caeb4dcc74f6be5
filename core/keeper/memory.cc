// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace gantry::keeper {
namespace {

constexpr int kBlockThreshold = 64 << 10;

/// Read-only segments only: what is written to exists nowhere else.
int ReleaseSegments(dl_phdr_info* info, size_t, void*) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const uintptr_t begin = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  // The program itself comes first; libraries are shared with others anyway.
  return 1;
}

}  // namespace

void SaveMemory() {
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, kBlockThreshold);
  mallopt(M_MMAP_THRESHOLD, kBlockThreshold);
}

void ReleaseMemory() {
  malloc_trim(0);
  dl_iterate_phdr(ReleaseSegments, nullptr);
}

}  // namespace gantry::keeper
