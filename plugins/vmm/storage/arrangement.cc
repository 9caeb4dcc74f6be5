// SPDX-License-Identifier: Apache-2.0
//
// The root, and what all have in common; mounts and devices are in arranged_mounts.cc.
#include "plugins/vmm/storage/arrangement.h"

#include <algorithm>
#include <utility>

#include <gantry/format.h>

#include "plugins/vmm/storage/layer_file.h"
#include "plugins/vmm/storage/layout.h"

namespace gantry::vmm {

Status Arranger::NeedFileSystems() const {
  if (request_.traits.file_systems) {
    return {};
  }
  return Fail(Code::kFailedPrecondition,
              "this VMM has no virtiofs: use QEMU or Cloud Hypervisor, or give it as a block "
              "device; a file "
              "may be read-only, and is copied");
}

Status Arranger::NeedDisks(std::string_view what) const {
  if (request_.traits.disks) {
    return {};
  }
  return Fail(Code::kFailedPrecondition, "{}: this VMM adds no disks to a machine that runs", what);
}

const Item& Arranger::Put(Item item) {
  item = table_.Shared(std::move(item));
  const auto same = std::ranges::find_if(made_.items, [&](const Item& one) {
    return one.number == item.number || (!item.key.empty() && one.key == item.key);
  });
  if (same != made_.items.end()) {
    return *same;
  }
  return made_.items.emplace_back(std::move(item));
}

void Arranger::AddOwnDisk(const RootImage& image) {
  Item item{.number = table_.NewNumber(), .disk = image.path};
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  item.mounts = {{.type = image.type, .serial = item.serial(), .target = item.path}};
  made_.release = image;
  made_.guest.root = Put(std::move(item)).path;
}

Result<std::vector<Item>> Arranger::LayersOf(const std::vector<RootImage>& images) {
  std::vector<Item> layers;
  for (const RootImage& image : images) {
    GANTRY_TRY(const Source file, LookAt(image.path));
    Item item{.number = table_.NewNumber(),
              .key = Format("image:{}:{}", image.path, file.identity),
              .disk = image.path,
              .read_only = true};
    item.path = VolumeInGuest(item.number);
    item.detach = {item.path};
    item.mounts = {
        {.type = image.type, .serial = item.serial(), .target = item.path, .options = {"ro"}}};
    layers.push_back(table_.Shared(std::move(item)));
  }
  return layers;
}

bool Arranger::HasRoomFor(const std::vector<Item>& layers) const {
  const auto fresh = std::ranges::count_if(
      layers, [&](const Item& layer) { return !table_.HasItem(layer.number); });
  const size_t own = request_.options.layers_directory.empty() ? 0 : 1;
  return table_.Disks() + static_cast<size_t>(fresh) + own <= request_.disk_places;
}

protocol::GuestMount Arranger::LayerOf(Item& root, const std::string& target) const {
  const StorageOptions& options = request_.options;
  if (!options.layers_directory.empty()) {
    root.disk = LayerFileOf(request_, root.number);
    root.is_layer = true;
    // Its file has nothing but zeroes: what would be written there to no end.
    return {.type = "ext4",
            .serial = root.serial(),
            .target = target,
            .options = {"nodev", "noatime", "noinit_itable"}};
  }
  protocol::GuestMount layer{
      .type = "tmpfs", .source = "tmpfs", .target = target, .options = {"mode=0700", "nodev"}};
  if (options.writable_layer_mib != 0) {
    layer.options.push_back(Format("size={}m", options.writable_layer_mib));
  }
  return layer;
}

// The layer for writing is the container's own: on a disk of the node's, or in the guest's memory.
void Arranger::AddLayers(std::vector<Item> layers) {
  std::string lower;
  for (Item& layer : layers) {
    lower += (lower.empty() ? "" : ":") + Put(std::move(layer)).path;
  }
  Item root{.number = table_.NewNumber()};
  const std::string folder = VolumeInGuest(root.number);
  const std::string layer = folder + "/layer";
  root.path = folder + "/root";
  root.detach = {root.path, layer, folder};
  root.mounts = {LayerOf(root, layer),
                 {.type = "overlay",
                  .source = "overlay",
                  .target = root.path,
                  .options = {"lowerdir=" + lower, Format("upperdir={}/upper", layer),
                              Format("workdir={}/work", layer)}}};
  made_.guest.root = Put(std::move(root)).path;
}

Status Arranger::AddSharedRoot(const std::string& rootfs) {
  if (!request_.options.virtiofs_roots) {
    return Fail(
        Code::kFailedPrecondition,
        "it is not made of block images, which is all that the option 'root_fs' lets: use a "
        "snapshotter for such (erofs, devmapper, blockfile)");
  }
  GANTRY_CHECK_OK(NeedFileSystems());
  GANTRY_TRY(Source source, LookAt(rootfs));
  if (source.kind != SourceKind::kDirectory) {
    return Fail(Code::kInvalidArgument, "it is {}", KindName(source.kind));
  }
  Item item{.number = table_.NewNumber(), .shared = true};
  item.path = Format("{}/{}", kGuestShared, NameOf(item.number));
  item.detach = {item.path};
  made_.sources[item.number] = {.source = std::move(source), .words = {.directory = true}};
  made_.guest.root = Put(std::move(item)).path;
  return {};
}

// Ids that the core has mapped when it mounted the root are in no image.
Status Arranger::AddRoot(const ContainerRequest& request, const oci::Spec& spec) {
  if (request_.traits.disks && request_.options.block_roots &&
      spec.linux_spec.uid_mappings.empty()) {
    GANTRY_TRY(const auto images, FindRootImages(request.rootfs));
    if (images && images->own) {
      AddOwnDisk(images->layers.front());
      return {};
    }
    if (images) {
      GANTRY_TRY(auto layers, LayersOf(images->layers));
      if (HasRoomFor(layers)) {
        AddLayers(std::move(layers));
        return {};
      }
    }
  }
  return AddSharedRoot(request.rootfs);
}

Result<Arrangement> Arranger::Arrange(const ContainerRequest& request, const oci::Spec& spec) {
  if (spec.mounts.size() > kMostMounts) {
    return Fail(Code::kInvalidArgument, "{} mounts: at most {}", spec.mounts.size(), kMostMounts);
  }
  if (Status added = AddRoot(request, spec); !added) {
    return std::unexpected(
        std::move(added).error().Within(Format("root file system '{}'", request.rootfs)));
  }
  for (size_t i = 0; i < spec.mounts.size(); ++i) {
    const oci::SpecMount& mount = spec.mounts[i];
    if (Status added = AddMount(i, mount, spec, request.bundle); !added) {
      return std::unexpected(std::move(added).error().Within(
          Format("mount '{}' on '{}'", mount.source, mount.destination)));
    }
  }
  for (const oci::Device& device : spec.linux_spec.devices) {
    if (Status added = AddDevice(device, spec); !added) {
      return std::unexpected(std::move(added).error().Within(Format("device '{}'", device.path)));
    }
  }
  GANTRY_CHECK_OK(AddHugePageLimit(spec));
  return std::move(made_);
}

}  // namespace gantry::vmm
