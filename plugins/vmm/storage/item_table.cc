// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/item_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/ids.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/proto/proto_message.h>

namespace gantry::vmm {
namespace {

constexpr size_t kMaxRecord = size_t{4} << 20;
constexpr size_t kMaxRecords = 4096;

struct ItemRecord {
  std::vector<Item> items{};

  void Each(this auto& self, auto&& field) { field(1, self.items); }
};

}  // namespace

Result<ItemTable> ItemTable::In(std::string folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno(errno, "make '{}'", folder);
  }
  ItemTable table(std::move(folder));
  GANTRY_TRY(const auto names, ListDirectory(table.folder_, kMaxRecords));
  for (const std::string& name : names) {
    table.Read(name);
  }
  return table;
}

// Beside records there may be what a `ReplaceFile` that was killed has left.
void ItemTable::Read(const std::string& container) {
  if (!IsValidId(container)) {
    return;
  }
  const auto text = ReadFile(FileOf(container), kMaxRecord);
  auto record = text ? DecodeProto<ItemRecord>(*text) : std::unexpected(text.error());
  if (!record) {
    return;
  }
  for (const Item& item : record->items) {
    last_ = std::max(last_, item.number);
  }
  containers_[container] = std::move(record->items);
}

Item ItemTable::Shared(Item item) const {
  if (item.key.empty()) {
    return item;
  }
  for (const auto& [container, items] : containers_) {
    for (const Item& one : items) {
      if (one.key == item.key && !leaving_.contains(one.number)) {
        return one;
      }
    }
  }
  return item;
}

Status ItemTable::Add(const std::string& container, const std::vector<Item>& items) {
  size_t count = items.size();
  for (const auto& [other, its] : containers_) {
    count += its.size();
  }
  if (count > kMostItems) {
    return Fail(Code::kResourceExhausted,
                "give container '{}' its files: its sandbox would have more than {} volumes",
                container, kMostItems);
  }
  GANTRY_CHECK_OK(ReplaceFile(FileOf(container), EncodeProto(ItemRecord{items}), 0600));
  containers_[container] = items;
  return {};
}

bool ItemTable::IsOthers(const std::string& container, uint32_t number) const {
  return std::ranges::any_of(containers_, [&](const auto& one) {
    return one.first != container && std::ranges::contains(one.second, number, &Item::number);
  });
}

std::vector<Item> ItemTable::Own(const std::string& container) const {
  std::vector<Item> own = Of(container);
  std::erase_if(own, [&](const Item& item) { return IsOthers(container, item.number); });
  std::ranges::reverse(own);
  return own;
}

std::vector<Item> ItemTable::Leaving(const std::string& container) {
  std::vector<Item> own = Own(container);
  for (const Item& item : own) {
    leaving_.insert(item.number);
  }
  return own;
}

std::vector<Item> ItemTable::Of(const std::string& container) const {
  const auto found = containers_.find(container);
  return found == containers_.end() ? std::vector<Item>() : found->second;
}

Status ItemTable::Remove(const std::string& container) {
  GANTRY_CHECK_OK(RemoveFile(FileOf(container)));
  for (const Item& item : Own(container)) {
    leaving_.erase(item.number);
  }
  containers_.erase(container);
  return {};
}

std::vector<std::string> ItemTable::Containers() const {
  std::vector<std::string> names;
  names.reserve(containers_.size());
  for (const auto& [container, items] : containers_) {
    names.push_back(container);
  }
  return names;
}

size_t ItemTable::Disks() const {
  std::set<uint32_t> disks;
  for (const auto& [container, items] : containers_) {
    for (const Item& item : items) {
      if (!item.disk.empty()) {
        disks.insert(item.number);
      }
    }
  }
  return disks.size();
}

uint64_t ItemTable::HugePages() const {
  uint64_t pages = 0;
  for (const auto& [container, items] : containers_) {
    for (const Item& item : items) {
      pages += item.huge_pages;
    }
  }
  return pages;
}

}  // namespace gantry::vmm
