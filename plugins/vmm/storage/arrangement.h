// SPDX-License-Identifier: Apache-2.0
//
// What a container's root, mounts and devices become, item by item, before anything is done.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/vmm/storage/guest_mounts.h"
#include "plugins/vmm/storage/item.h"
#include "plugins/vmm/storage/item_table.h"
#include "plugins/vmm/storage/root_images.h"
#include "plugins/vmm/storage/shared_directory.h"
#include "plugins/vmm/storage/source.h"
#include "plugins/vmm/storage/storage.h"

namespace gantry::vmm {

/// What is bound below the shared directory.
struct SharedSource {
  Source source;
  BindRequest words;
};

struct Arrangement {
  /// In the order in which the guest gets them: what lies on another is behind it.
  std::vector<Item> items{};
  GuestMounts guest{};
  /// By number. An item that another container has already is among them, too.
  std::map<uint32_t, SharedSource> sources{};
  /// Files whose content the guest is given, since it has none of the node's.
  std::vector<protocol::File> copies{};
  /// To be unmounted on the node before the guest gets it.
  std::optional<RootImage> release{};
};

/// Thread: one. Blocks: on files.
class Arranger {
 public:
  static constexpr size_t kMostMounts = 1024;
  /// Of all copies of a container: they go to the guest in one message, which may have 1 MiB.
  static constexpr size_t kMostCopied = size_t{512} << 10;

  /// `table` gives numbers and items that others have; all outlive this object.
  Arranger(ItemTable& table, const StorageRequest& request) : table_(table), request_(request) {}

  /// Once. Errors: kFailedPrecondition and kInvalidArgument, naming what of config.json it is; as
  /// `Storage::Add`.
  Result<Arrangement> Arrange(const ContainerRequest& request, const oci::Spec& spec);

 private:
  Status AddRoot(const ContainerRequest& request, const oci::Spec& spec);
  void AddOwnDisk(const RootImage& image);
  Result<std::vector<Item>> LayersOf(const std::vector<RootImage>& images);
  bool HasRoomFor(const std::vector<Item>& layers) const;
  void AddLayers(std::vector<Item> layers);
  /// The layer for writing, on `target`; `root` has its disk, where it is one.
  protocol::GuestMount LayerOf(Item& root, const std::string& target) const;
  Status AddSharedRoot(const std::string& rootfs);
  Status AddMount(size_t place, oci::SpecMount mount, const oci::Spec& spec,
                  const std::string& bundle);
  Result<std::string> AddVolume(const oci::SpecMount& mount, Source source);
  Result<std::string> AddShared(const oci::SpecMount& mount, Source source);
  Result<std::string> AddCopy(const Source& source);
  Result<std::string> AddDisk(const oci::SpecMount& mount, const Source& source);
  std::string AddMemory(const Source& source);
  Result<std::string> AddHugePages(const Source& source);
  Status AddDevice(const oci::Device& device, const oci::Spec& spec);
  Status AddHugePageLimit(const oci::Spec& spec);
  Status NeedFileSystems() const;
  Status NeedDisks(std::string_view what) const;
  /// The container has it, once; it may be one that is there already.
  const Item& Put(Item item);

  ItemTable& table_;
  const StorageRequest& request_;
  Arrangement made_;
};

}  // namespace gantry::vmm
