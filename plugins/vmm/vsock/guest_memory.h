// SPDX-License-Identifier: Apache-2.0
//
// A guest's memory, mapped here, and where an address of the guest is in it. Each address is
// looked up with its length: nothing outside of what the front end has shared can be reached.
//
// The memory is written by the guest at any moment. Who reads a value to decide by it reads it
// once.
//
// A file that is shorter than it was said to be is refused when it is mapped. One that the front
// end cuts short afterwards ends this program by SIGBUS: a front end that was taken over may end
// its own machine's device as well by closing the connection, and there is nobody else's in this
// process. QEMU's files in memory are sealed against it.
// Source: QEMU 10.0, docs/interop/vhost-user.rst, "Memory region description".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm::vsock {

/// As the wire has it.
struct MemoryRegion {
  uint64_t guest_address = 0;
  uint64_t size = 0;
  /// Where the front end has it mapped, in whose terms it speaks of queues.
  uint64_t front_end_address = 0;
  uint64_t file_offset = 0;
};

/// Thread: the loop's.
class GuestMemory {
 public:
  /// As many as one message of the front end's has.
  static constexpr size_t kMaxRegions = 8;

  GuestMemory() = default;
  GuestMemory(const GuestMemory&) = delete;
  GuestMemory& operator=(const GuestMemory&) = delete;
  ~GuestMemory();

  /// All of it, in place of what there was; a file for each region. Errors: kInvalidArgument: no
  /// regular file of that size, a region that is empty or wraps around, too many; the errno's.
  /// What there was is left then.
  Status Map(std::span<const MemoryRegion> regions, std::span<const UniqueFd> files);
  void Clear();

  /// As much of [address, address + size) as lies together; empty where there is no memory.
  std::span<std::byte> AtGuest(uint64_t address, uint64_t size) const;
  /// All of it, or null.
  std::byte* AtFrontEnd(uint64_t address, uint64_t size) const;

 private:
  struct Mapped {
    MemoryRegion region;
    /// Where the region begins.
    std::byte* bytes = nullptr;
    void* mapping = nullptr;
    size_t mapping_size = 0;
  };

  using All = std::array<Mapped, kMaxRegions>;

  static Result<Mapped> MapOne(const MemoryRegion& region, int file);
  static void Unmap(All& all, size_t count);

  All all_;
  size_t count_ = 0;
};

}  // namespace gantry::vmm::vsock
