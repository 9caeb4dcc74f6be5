// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/guest_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace gantry::vmm::vsock {
namespace {

bool Wraps(uint64_t begin, uint64_t size) {
  return size > std::numeric_limits<uint64_t>::max() - begin;
}

}  // namespace

GuestMemory::~GuestMemory() { Clear(); }

void GuestMemory::Unmap(All& all, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    munmap(all[i].mapping, all[i].mapping_size);
    all[i] = {};
  }
}

void GuestMemory::Clear() {
  Unmap(all_, count_);
  count_ = 0;
}

Result<GuestMemory::Mapped> GuestMemory::MapOne(const MemoryRegion& region, int file) {
  if (region.size == 0 || Wraps(region.guest_address, region.size) ||
      Wraps(region.front_end_address, region.size) || Wraps(region.file_offset, region.size)) {
    return Fail(Code::kInvalidArgument,
                "map {} bytes of guest memory at {:#x}: empty, or around the end of addresses",
                region.size, region.guest_address);
  }
  struct stat info{};
  if (fstat(file, &info) != 0) {
    return FailErrno(errno, "look at the file of guest memory at {:#x}", region.guest_address);
  }
  const uint64_t end = region.file_offset + region.size;
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) < end) {
    return Fail(Code::kInvalidArgument,
                "map guest memory at {:#x}: its file has {} bytes, and {} are needed",
                region.guest_address, info.st_size, end);
  }
  // Whole pages of the file's own size, which may be huge ones. Source: hugetlbfs, st_blksize.
  const uint64_t page = std::max<uint64_t>(static_cast<uint64_t>(info.st_blksize), 4096);
  const uint64_t begin = region.file_offset / page * page;
  if (Wraps(end, page)) {
    return Fail(Code::kInvalidArgument, "map guest memory at {:#x}: too large",
                region.guest_address);
  }
  const size_t size = (end - begin + page - 1) / page * page;
  void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                             file, static_cast<off_t>(begin));
  if (mapping == MAP_FAILED) {
    return FailErrno(errno, "map {} bytes of guest memory at {:#x}", region.size,
                     region.guest_address);
  }
  return Mapped{.region = region,
                .bytes = static_cast<std::byte*>(mapping) + (region.file_offset - begin),
                .mapping = mapping,
                .mapping_size = size};
}

Status GuestMemory::Map(std::span<const MemoryRegion> regions, std::span<const UniqueFd> files) {
  if (regions.size() > kMaxRegions || regions.size() != files.size()) {
    return Fail(Code::kInvalidArgument, "map {} regions of guest memory with {} files, at most {}",
                regions.size(), files.size(), kMaxRegions);
  }
  All fresh{};
  for (size_t i = 0; i < regions.size(); ++i) {
    auto mapped = MapOne(regions[i], files[i].get());
    if (!mapped) {
      Unmap(fresh, i);
      return std::unexpected(std::move(mapped).error());
    }
    fresh[i] = *mapped;
  }
  Clear();
  all_ = fresh;
  count_ = regions.size();
  return {};
}

std::span<std::byte> GuestMemory::AtGuest(uint64_t address, uint64_t size) const {
  for (size_t i = 0; i < count_; ++i) {
    const MemoryRegion& region = all_[i].region;
    const uint64_t offset = address - region.guest_address;
    if (address >= region.guest_address && offset < region.size) {
      return {all_[i].bytes + offset, std::min(size, region.size - offset)};
    }
  }
  return {};
}

std::byte* GuestMemory::AtFrontEnd(uint64_t address, uint64_t size) const {
  for (size_t i = 0; i < count_; ++i) {
    const MemoryRegion& region = all_[i].region;
    const uint64_t offset = address - region.front_end_address;
    if (address >= region.front_end_address && offset < region.size &&
        size <= region.size - offset) {
      return all_[i].bytes + offset;
    }
  }
  return nullptr;
}

}  // namespace gantry::vmm::vsock
