// SPDX-License-Identifier: Apache-2.0
//
// The files of one sandbox's containers, as its guest gets them: roots and volumes.
//
// What can be given as a block device is (a root that is made of images, a volume that is a
// device); the guest mounts it. All else lies below one shared directory of the sandbox, which
// virtiofsd shows to the guest: the host's mounts are bound there, before or after the guest has
// booted.
//
//   Make -> file_systems() into the VM -> boot
//   Add -> AddDisk for each of `disks` -> the agent's SetUp and Attach -> CreateContainer
//   the agent's Delete -> DetachOf -> RemoveDisk for each of DisksOf -> Remove
//
// After the machine's end `Remove` and `Shutdown` do without the guest. What is there is on record
// in the sandbox's directory before it is made, so an engine after this one takes it up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/vmm/hypervisor/hypervisor.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/storage/options.h"

namespace gantry::vmm {

struct StorageRequest {
  /// The sandbox's own directory, mode 0700, on a tmpfs; it is there. Sockets in it have short
  /// paths.
  std::string directory;
  StorageOptions options;
  /// Which virtiofsd is born in.
  std::vector<std::string> cgroups;
  /// Of the VMM. Without file systems there is no virtiofsd, and what needs it is refused.
  Traits traits;
  /// So many disks have room in the machine; roots of images that find none go through virtiofs.
  uint32_t disk_places = 16;
  /// virtiofsd has ended, and with it all files of the guest: `why` has its last words. Once, on a
  /// worker or within `Recover`; not after `Shutdown`, which it may call, but not wait for. It
  /// comes with the VMM's end, too: virtiofsd ends with that connection. May be empty.
  std::function<void(Error why)> ended;
};

/// What a container needs of its machine before it can be created.
struct ContainerStorage {
  /// To be added to the machine, where they are not there already (kAlreadyExists): containers
  /// share them.
  std::vector<Disk> disks;
  /// For the agent's SetUp, where there are any: pages for hugetlbfs, and copies of files where the
  /// guest sees none of the node's.
  std::vector<protocol::Sysctl> sysctls;
  std::vector<protocol::File> files;
  /// For the agent, then.
  protocol::Attach attach;
  /// In the guest.
  std::string bundle;
  /// config.json with `root.path`, `mounts` and `linux.devices` as they are in the guest; all else
  /// as it was.
  std::string spec_json;
};

/// Thread: any; calls are one after the other. Blocks: on mounts. Its destructor leaves all as it
/// is: the next engine's.
class Storage {
 public:
  /// Makes the shared directory and starts virtiofsd, tag "virtiofsd". On failure nothing is left.
  /// Errors: kFailedPrecondition: virtiofsd is not installed; those of mount and spawn.
  static Result<std::unique_ptr<Storage>> Make(SandboxContext& context, StorageRequest request);
  /// The same sandbox's, after a restart of the engine. Errors: kNotFound: there is none.
  static Result<std::unique_ptr<Storage>> Recover(SandboxContext& context, StorageRequest request);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  /// For the VM's configuration.
  virtual std::vector<FileSystem> file_systems() const = 0;

  /// Makes the container's files ready. `spec`: of `request.spec_json`. On failure nothing of it is
  /// left. Errors: kFailedPrecondition, naming the mount: what a guest cannot be given (a socket, a
  /// FIFO, a mount that is to show on the node too); kInvalidArgument: a source that is not there;
  /// kAlreadyExists: that container was added. Owner: borrowed.
  virtual Result<ContainerStorage> Add(const ContainerRequest& request, const oci::Spec& spec) = 0;
  /// What the agent is to let go of, before `Remove`; nothing of one that was not added. What a
  /// container that is added from now on shares with it is made anew.
  virtual protocol::Detach DetachOf(const ContainerId& id) = 0;
  /// The serials of what is to be removed from the machine then.
  virtual std::vector<std::string> DisksOf(const ContainerId& id) const = 0;
  /// Undoes `Add`. Again, and of one that was not added, or only half: success.
  virtual Status Remove(const ContainerId& id) = 0;

  /// Ends virtiofsd and removes every trace. Again: success.
  virtual Status Shutdown() = 0;

 protected:
  Storage() = default;
};

}  // namespace gantry::vmm
