// SPDX-License-Identifier: Apache-2.0
//
// Where what is:
//
//     block 0    1024: the superblock; from 1152 on an inode of 32 bytes for the root
//                and for each of its entries, in the order of their names
//     block 1    the root's entries
//     block 2..  for each entry its content; an empty directory's is "." and ".."
//
// An inode's number is its offset in slots of 32 bytes.
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <vector>

#include <gantry/toolkit/image/erofs_image.h>

namespace gantry {
namespace {

constexpr size_t kBlockBits = 12;
constexpr size_t kBlock = size_t{1} << kBlockBits;
constexpr size_t kSuperblockAt = 1024;
constexpr size_t kSuperblockSize = 128;
constexpr uint32_t kMagic = 0xe0f5e1e2;
constexpr size_t kSlot = 32;
constexpr size_t kRootNode = (kSuperblockAt + kSuperblockSize) / kSlot;
constexpr size_t kMostEntries = kBlock / kSlot - kRootNode - 1;
constexpr size_t kRootBlock = 1;
constexpr size_t kDirentSize = 12;
constexpr size_t kLongestName = 255;
constexpr mode_t kRootMode = S_IFDIR | 0755;

/// Little-endian numbers one after the other, at any place of the image.
class Cursor {
 public:
  Cursor(std::string& image, size_t at) : image_(image), at_(at) {}

  Cursor& Put(uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      image_[at_++] = static_cast<char>(number >> (8 * i) & 0xff);
    }
    return *this;
  }

  Cursor& Put8(uint64_t number) { return Put(number, 1); }

  Cursor& Put16(uint64_t number) { return Put(number, 2); }

  Cursor& Put32(uint64_t number) { return Put(number, 4); }

  Cursor& Put64(uint64_t number) { return Put(number, 8); }

 private:
  std::string& image_;
  size_t at_;
};

struct Dirent {
  std::string name;
  size_t node = 0;
  mode_t mode = 0;
};

/// First the dirents, then their names. The size of a directory is that of what is in it:
/// gVisor 20240729 takes all up to the end for the last name.
Result<std::string> Directory(const std::vector<Dirent>& entries) {
  constexpr uint64_t kFile = 1;
  constexpr uint64_t kDirectory = 2;
  std::string out(entries.size() * kDirentSize, '\0');
  Cursor cursor(out, 0);
  std::string names;
  for (const Dirent& entry : entries) {
    cursor.Put64(entry.node)
        .Put16(out.size() + names.size())
        .Put8(S_ISDIR(entry.mode) ? kDirectory : kFile)
        .Put8(0);
    names += entry.name;
  }
  out += names;
  if (out.size() > kBlock) {
    return Fail(Code::kInvalidArgument, "{} entries are too many for an image", entries.size());
  }
  return out;
}

Status Check(const std::map<std::string, ErofsEntry>& entries) {
  if (entries.size() > kMostEntries) {
    return Fail(Code::kInvalidArgument, "{} entries are too many for an image", entries.size());
  }
  for (const auto& [name, entry] : entries) {
    // Of names before "." there is none that anybody needs, so that the order is simple.
    if (name.size() > kLongestName || name <= ".." ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      return Fail(Code::kInvalidArgument, "'{}' cannot be in an image", name);
    }
    if (!S_ISREG(entry.mode) && !(S_ISDIR(entry.mode) && entry.content.empty())) {
      return Fail(Code::kInvalidArgument, "'{}' is neither file nor empty directory", name);
    }
  }
  return {};
}

class Writer {
 public:
  explicit Writer(size_t entries) : image_((kRootBlock + 1) * kBlock, '\0'), root_links_(2) {
    root_ = {{".", kRootNode, kRootMode}, {"..", kRootNode, kRootMode}};
    root_.reserve(root_.size() + entries);
  }

  Status Add(const std::string& name, const ErofsEntry& entry) {
    const size_t node = kRootNode + root_.size() - 1;
    if (S_ISDIR(entry.mode)) {
      GANTRY_TRY(const std::string content,
                 Directory({{".", node, entry.mode}, {"..", kRootNode, kRootMode}}));
      PutInode(node, entry.mode, 2, content.size(), Append(content));
      ++root_links_;
    } else {
      PutInode(node, entry.mode, 1, entry.content.size(), Append(entry.content));
    }
    root_.push_back({name, node, entry.mode});
    return {};
  }

  Result<std::string> Finish() && {
    GANTRY_TRY(const std::string content, Directory(root_));
    image_.replace(kRootBlock * kBlock, content.size(), content);
    PutInode(kRootNode, kRootMode, root_links_, content.size(), kRootBlock);
    PutSuperblock();
    return std::move(image_);
  }

 private:
  /// Begins a block; its number.
  size_t Append(std::string_view content) {
    const size_t block = image_.size() / kBlock;
    image_ += content;
    image_.resize((image_.size() + kBlock - 1) / kBlock * kBlock);
    return block;
  }

  void PutInode(size_t node, mode_t mode, size_t links, size_t size, size_t block) {
    // Compact, its content in whole blocks.
    constexpr uint64_t kFormat = 0;
    Cursor(image_, node * kSlot)
        .Put16(kFormat)
        .Put16(0)  // Extended attributes.
        .Put16(mode)
        .Put16(links)
        .Put32(size)
        .Put32(0)
        .Put32(block)
        .Put32(node);  // The rest is owner and group.
  }

  void PutSuperblock() {
    Cursor(image_, kSuperblockAt)
        .Put32(kMagic)
        .Put32(0)  // No checksum: whoever is handed the image is handed it by its maker.
        .Put32(0)  // Compatible features.
        .Put8(kBlockBits)
        .Put8(0)  // Further slots of the superblock.
        .Put16(kRootNode)
        .Put64(root_.size() - 1)  // Inodes.
        .Put64(0)                 // Time.
        .Put32(0)
        .Put32(image_.size() / kBlock);  // The rest are places in block 0, names, features.
  }

  std::string image_;
  std::vector<Dirent> root_;
  size_t root_links_;
};

}  // namespace

Result<std::string> ErofsImage(const std::map<std::string, ErofsEntry>& entries) {
  GANTRY_CHECK_OK(Check(entries));
  Writer writer(entries.size());
  for (const auto& [name, entry] : entries) {
    GANTRY_CHECK_OK(writer.Add(name, entry));
  }
  return std::move(writer).Finish();
}

}  // namespace gantry
