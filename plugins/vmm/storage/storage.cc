// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/storage.h"

#include <algorithm>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/hypervisor/firecracker/firecracker.h"
#include "plugins/vmm/storage/arrangement.h"
#include "plugins/vmm/storage/item_table.h"
#include "plugins/vmm/storage/layer_file.h"
#include "plugins/vmm/storage/layout.h"
#include "plugins/vmm/storage/shared_directory.h"
#include "plugins/vmm/storage/virtiofsd.h"

namespace gantry::vmm {
namespace {

/// How long a disk may take to come in a guest that does other things.
constexpr uint32_t kDiskWaitMs = 30'000;

VirtiofsdRequest RequestOf(const StorageRequest& request) {
  return {.options = request.options,
          .shared = SharedIn(request.directory),
          .socket = SocketIn(request.directory),
          .cgroups = request.cgroups,
          .ended = request.ended};
}

class SandboxStorage final : public Storage {
 public:
  SandboxStorage(StorageRequest request, ItemTable table, std::unique_ptr<Virtiofsd> virtiofsd)
      : request_(std::move(request)),
        shared_(SharedIn(request_.directory)),
        table_(std::move(table)),
        virtiofsd_(std::move(virtiofsd)) {}

  std::vector<FileSystem> file_systems() const override;
  Result<ContainerStorage> Add(const ContainerRequest& request, const oci::Spec& spec) override;
  protocol::Detach DetachOf(const ContainerId& id) override;
  std::vector<std::string> DisksOf(const ContainerId& id) const override;
  Status Remove(const ContainerId& id) override;
  Status Shutdown() override;

 private:
  Status Make(const ContainerRequest& request, const Arrangement& arrangement) const;
  Result<ContainerStorage> StorageOf(const ContainerRequest& request) const GANTRY_REQUIRES(mutex_);
  Status RemoveLocked(const std::string& container) GANTRY_REQUIRES(mutex_);

  const StorageRequest request_;
  const SharedDirectory shared_;
  mutable Mutex mutex_;
  ItemTable table_ GANTRY_GUARDED_BY(mutex_);
  std::unique_ptr<Virtiofsd> virtiofsd_ GANTRY_GUARDED_BY(mutex_);
};

std::vector<FileSystem> SandboxStorage::file_systems() const {
  if (!request_.traits.file_systems) {
    return {};
  }
  return {{.tag = kShareTag, .socket = SocketIn(request_.directory)}};
}

Status SandboxStorage::Make(const ContainerRequest& request, const Arrangement& arrangement) const {
  for (const auto& [number, shared] : arrangement.sources) {
    BindRequest bind = shared.words;
    bind.source = shared.source.fd.get();
    if (Status bound = shared_.Bind(NameOf(number), bind); !bound) {
      return std::unexpected(
          std::move(bound).error().Within(Format("share '{}'", shared.source.path)));
    }
  }
  for (const Item& item : arrangement.items) {
    if (item.is_layer) {
      const uint32_t mib = request_.options.writable_layer_mib;
      GANTRY_CHECK_OK(MakeLayerFile(item.disk, mib != 0 ? mib : kLayerMib));
    }
  }
  return arrangement.release ? ReleaseRoot(request.rootfs, *arrangement.release) : Status();
}

/// As the guest finds them. The VMM whose guest looks for its disks itself lets nobody choose their
/// serials.
Result<std::vector<protocol::GuestMount>> MountsOf(const Item& item, const Traits& traits) {
  std::vector<protocol::GuestMount> mounts = item.mounts;
  if (item.disk.empty() || !traits.guest_rescans) {
    return mounts;
  }
  GANTRY_TRY(const std::string serial, FirecrackerSerial(item.disk));
  for (protocol::GuestMount& one : mounts) {
    if (!one.serial.empty()) {
      one.serial = serial;
    }
  }
  return mounts;
}

Result<ContainerStorage> SandboxStorage::StorageOf(const ContainerRequest& request) const {
  ContainerStorage storage;
  storage.bundle = kGuestBundle;
  storage.attach.wait_ms = kDiskWaitMs;
  if (request_.traits.file_systems) {
    storage.attach.mounts.push_back(
        {.type = "virtiofs", .source = kShareTag, .target = kGuestShared});
  }
  bool huge_pages = false;
  for (const Item& item : table_.Of(request.id.str())) {
    if (!item.disk.empty()) {
      storage.disks.push_back(item.ToDisk());
    }
    GANTRY_TRY(const auto mounts, MountsOf(item, request_.traits));
    storage.attach.mounts.insert(storage.attach.mounts.end(), mounts.begin(), mounts.end());
    huge_pages = huge_pages || item.huge_pages != 0;
  }
  if (huge_pages) {
    storage.sysctls.push_back(
        {.name = "vm.nr_hugepages", .value = std::to_string(table_.HugePages())});
  }
  return storage;
}

Result<ContainerStorage> SandboxStorage::Add(const ContainerRequest& request,
                                             const oci::Spec& spec) {
  const std::string& id = request.id.str();
  const MutexLock lock(mutex_);
  if (table_.Has(id)) {
    return Fail(Code::kAlreadyExists, "give container '{}' its files: it has them", id);
  }
  GANTRY_TRY(const Arrangement arrangement, Arranger(table_, request_).Arrange(request, spec));
  GANTRY_TRY(std::string spec_json, WithGuestMounts(request.spec_json, arrangement.guest));
  GANTRY_CHECK_OK(table_.Add(id, arrangement.items));
  if (Status made = Make(request, arrangement); !made) {
    IgnoreError(RemoveLocked(id), "the first error is what counts");
    return std::unexpected(std::move(made).error());
  }
  auto storage = StorageOf(request);
  if (!storage) {
    IgnoreError(RemoveLocked(id), "the first error is what counts");
    return storage;
  }
  storage->files = arrangement.copies;
  storage->spec_json = std::move(spec_json);
  return storage;
}

protocol::Detach SandboxStorage::DetachOf(const ContainerId& id) {
  const MutexLock lock(mutex_);
  protocol::Detach detach;
  for (const Item& item : table_.Leaving(id.str())) {
    detach.targets.insert(detach.targets.end(), item.detach.begin(), item.detach.end());
  }
  return detach;
}

std::vector<std::string> SandboxStorage::DisksOf(const ContainerId& id) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> serials;
  for (const Item& item : table_.Own(id.str())) {
    if (!item.disk.empty()) {
      serials.push_back(item.serial());
    }
  }
  return serials;
}

Status SandboxStorage::RemoveLocked(const std::string& container) {
  for (const Item& item : table_.Own(container)) {
    if (item.shared) {
      GANTRY_CHECK_OK(shared_.Unbind(NameOf(item.number)));
    }
    if (item.is_layer) {
      GANTRY_CHECK_OK(RemoveFile(item.disk));
    }
  }
  return table_.Remove(container);
}

Status SandboxStorage::Remove(const ContainerId& id) {
  const MutexLock lock(mutex_);
  return RemoveLocked(id.str());
}

/// All that lies in the sandbox's directory.
Status RemoveFiles(const std::string& directory) {
  GANTRY_CHECK_OK(SharedDirectory(SharedIn(directory)).Remove());
  GANTRY_CHECK_OK(RemoveFile(SocketIn(directory)));
  return RemoveTree(RecordsIn(directory));
}

// virtiofsd is waited for without the lock: who is told of its end may be on his way here.
Status SandboxStorage::Shutdown() {
  std::unique_ptr<Virtiofsd> virtiofsd;
  {
    const MutexLock lock(mutex_);
    virtiofsd = std::move(virtiofsd_);
  }
  if (virtiofsd) {
    GANTRY_CHECK_OK(virtiofsd->Stop());
  }
  const MutexLock lock(mutex_);
  for (const std::string& container : table_.Containers()) {
    GANTRY_CHECK_OK(RemoveLocked(container));
  }
  return RemoveFiles(request_.directory);
}

Result<std::unique_ptr<Virtiofsd>> Begin(SandboxContext& context, const StorageRequest& request) {
  GANTRY_CHECK_OK(CheckStorageOptions(request.options));
  if (!request.traits.file_systems) {
    return std::unique_ptr<Virtiofsd>();
  }
  GANTRY_CHECK_OK(SharedDirectory(SharedIn(request.directory)).Make());
  return Virtiofsd::Start(context, RequestOf(request));
}

}  // namespace

Result<std::unique_ptr<Storage>> Storage::Make(SandboxContext& context, StorageRequest request) {
  SweepLayerFiles(request);
  GANTRY_TRY(auto table, ItemTable::In(RecordsIn(request.directory)));
  auto virtiofsd = Begin(context, request);
  if (!virtiofsd) {
    IgnoreError(RemoveFiles(request.directory), "the first error is what counts");
    return std::unexpected(std::move(virtiofsd).error());
  }
  return std::make_unique<SandboxStorage>(std::move(request), std::move(table),
                                          std::move(*virtiofsd));
}

Result<std::unique_ptr<Storage>> Storage::Recover(SandboxContext& context, StorageRequest request) {
  std::unique_ptr<Virtiofsd> virtiofsd;
  if (!Exists(RecordsIn(request.directory))) {
    return Fail(Code::kNotFound, "find the files of a sandbox: '{}' has none", request.directory);
  }
  if (request.traits.file_systems) {
    auto found = Virtiofsd::Recover(context, RequestOf(request));
    if (!found) {
      // Its start was never finished, so no container has anything of it.
      IgnoreError(RemoveFiles(request.directory), "whoever makes it anew is told");
      return std::unexpected(std::move(found).error());
    }
    virtiofsd = std::move(*found);
  }
  auto table = ItemTable::In(RecordsIn(request.directory));
  if (!table) {
    if (table.error().code != Code::kResourceExhausted) {
      IgnoreError(RemoveFiles(request.directory), "what it could not read is of no use");
    }
    return std::unexpected(std::move(table).error());
  }
  return std::make_unique<SandboxStorage>(std::move(request), *std::move(table),
                                          std::move(virtiofsd));
}

}  // namespace gantry::vmm
