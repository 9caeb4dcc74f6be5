// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/image/erofs_reader.h"

#include <cstring>
#include <vector>

namespace gantry {
namespace {

/// Source: Linux 6.12, fs/erofs/erofs_fs.h, erofs_dirent.
struct [[gnu::packed]] RawDirent {
  uint64_t nid;
  uint16_t nameoff;
  uint8_t file_type;
  uint8_t reserved;
};

template <class T>
std::optional<T> At(const std::string& bytes, size_t at) {
  T value;
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) {
    return std::nullopt;
  }
  memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// The names in one block, which begin where the first dirent says.
std::optional<std::vector<std::pair<std::string, RawDirent>>> Dirents(const std::string& block) {
  std::vector<std::pair<std::string, RawDirent>> all;
  const auto first = At<RawDirent>(block, 0);
  if (!first || first->nameoff % sizeof(RawDirent) != 0) {
    return std::nullopt;
  }
  const size_t count = first->nameoff / sizeof(RawDirent);
  for (size_t i = 0; i < count; ++i) {
    const auto dirent = At<RawDirent>(block, i * sizeof(RawDirent));
    const auto next = At<RawDirent>(block, (i + 1) * sizeof(RawDirent));
    const size_t end = i + 1 < count && next ? next->nameoff : block.size();
    if (!dirent || dirent->nameoff >= end || end > block.size()) {
      return std::nullopt;
    }
    all.emplace_back(block.substr(dirent->nameoff, end - dirent->nameoff), *dirent);
  }
  return all;
}

}  // namespace

ErofsSuperblock ErofsReader::superblock() const {
  return At<ErofsSuperblock>(image_, 1024).value_or(ErofsSuperblock{});
}

std::optional<ErofsInode> ErofsReader::Inode(uint64_t nid) const {
  const ErofsSuperblock super = superblock();
  return At<ErofsInode>(image_, (size_t{super.meta_blkaddr} << super.blkszbits) + nid * 32);
}

std::optional<std::string> ErofsReader::Content(const ErofsInode& inode) const {
  const size_t at = size_t{inode.raw_blkaddr} << superblock().blkszbits;
  if (inode.format != 0 || at > image_.size() || image_.size() - at < inode.size) {
    return std::nullopt;
  }
  return image_.substr(at, inode.size);
}

std::optional<std::map<std::string, ErofsReader::Entry>> ErofsReader::List(
    const ErofsInode& directory) const {
  const auto content = Content(directory);
  const auto dirents = content ? Dirents(*content) : std::nullopt;
  if (!dirents) {
    return std::nullopt;
  }
  std::map<std::string, Entry> all;
  for (const auto& [name, dirent] : *dirents) {
    if (!all.empty() && name <= all.rbegin()->first) {
      return std::nullopt;
    }
    all[name] = {dirent.nid, dirent.file_type};
  }
  return all;
}

}  // namespace gantry
