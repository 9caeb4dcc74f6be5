// SPDX-License-Identifier: Apache-2.0
//
// Reads a small EROFS image as a kernel does, and knows nothing of the code that wrote it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gantry {

/// Source: Linux 6.12, fs/erofs/erofs_fs.h, erofs_super_block.
struct ErofsSuperblock {
  uint32_t magic;
  uint32_t checksum;
  uint32_t feature_compat;
  uint8_t blkszbits;
  uint8_t sb_extslots;
  uint16_t root_nid;
  uint64_t inos;
  uint64_t build_time;
  uint32_t build_time_nsec;
  uint32_t blocks;
  uint32_t meta_blkaddr;
  uint32_t xattr_blkaddr;
  uint8_t uuid[16];
  uint8_t volume_name[16];
  uint32_t feature_incompat;
  uint8_t rest[44];
};

static_assert(sizeof(ErofsSuperblock) == 128);

/// Source: the same, erofs_inode_compact.
struct ErofsInode {
  uint16_t format;
  uint16_t xattr_icount;
  uint16_t mode;
  uint16_t nlink;
  uint32_t size;
  uint32_t reserved;
  uint32_t raw_blkaddr;
  uint32_t ino;
  uint16_t uid;
  uint16_t gid;
  uint32_t reserved2;
};

static_assert(sizeof(ErofsInode) == 32);

class ErofsReader {
 public:
  explicit ErofsReader(std::string image) : image_(std::move(image)) {}

  struct Entry {
    uint64_t nid = 0;
    uint8_t file_type = 0;
  };

  ErofsSuperblock superblock() const;
  /// None: it lies outside the image.
  std::optional<ErofsInode> Inode(uint64_t nid) const;
  /// None: it lies outside the image, or anywhere but in blocks of its own.
  std::optional<std::string> Content(const ErofsInode& inode) const;
  /// None: malformed, or not in the order of the names.
  std::optional<std::map<std::string, Entry>> List(const ErofsInode& directory) const;

 private:
  std::string image_;
};

}  // namespace gantry
