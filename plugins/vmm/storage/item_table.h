// SPDX-License-Identifier: Apache-2.0
//
// Which items the containers of a sandbox have, on record in a file for each container: it is
// written before anything is made, and removed when all is gone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/vmm/storage/item.h"

namespace gantry::vmm {

/// Thread: one at a time. Blocks: on files.
class ItemTable {
 public:
  /// Of all containers together.
  static constexpr size_t kMostItems = 4096;

  /// What is on record in `folder`, which is made where it is missing. What is no record, or half
  /// of one, is left out: it was written by nobody who has gone on.
  static Result<ItemTable> In(std::string folder);

  bool Has(const std::string& container) const { return containers_.contains(container); }

  /// A number for a new item.
  uint32_t NewNumber() { return ++last_; }

  /// A container has it.
  bool HasItem(uint32_t number) const { return IsOthers("", number); }

  /// The item that is there under `item.key` and stays, or else `item`.
  Item Shared(Item item) const;

  /// On record from now on. Errors: kResourceExhausted; the file's.
  Status Add(const std::string& container, const std::vector<Item>& items);

  /// The items that no other container has, the last first. From now on no other gets them.
  std::vector<Item> Leaving(const std::string& container);
  /// The same without a change.
  std::vector<Item> Own(const std::string& container) const;
  /// All of a container's, in their order.
  std::vector<Item> Of(const std::string& container) const;

  /// Again, and of one that is not there: success.
  Status Remove(const std::string& container);

  std::vector<std::string> Containers() const;

  /// Of all containers together.
  uint64_t HugePages() const;
  /// How many disks there are, each once.
  size_t Disks() const;

 private:
  explicit ItemTable(std::string folder) : folder_(std::move(folder)) {}

  void Read(const std::string& container);

  std::string FileOf(const std::string& container) const { return folder_ + "/" + container; }

  bool IsOthers(const std::string& container, uint32_t number) const;

  std::string folder_;
  uint32_t last_ = 0;
  std::map<std::string, std::vector<Item>> containers_;
  std::set<uint32_t> leaving_;
};

}  // namespace gantry::vmm
