// SPDX-License-Identifier: Apache-2.0
//
// Where the files of one machine are: DIRECTORY/vm, a tmpfs of its own. All that a guest or a VMM
// can write lies in it, and it has one MiB: when it is full their later words are lost, and nothing
// else.
//
//   vm/console     the guest's, which the VMM writes
//   vm/NAME.pid    which process that is, of a VM that was made for nobody yet
//   vm/own-root    where `vm` is in the root of a VMM that was made for nobody yet
//   vm/fs-TAG      where the VMM meets virtiofsd, where it was made before
//   vm/vmm.log     standard error of the VMM, vm/vsock.log of the vsock device
//   vm/control     where the VMM is told what to do
//   vm/front-end   where the VMM meets the vsock device
//   vm/s           the vsock device's root: `v`, and `v_1025` and `v_1026`, which the guest dials
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/options.h"

namespace gantry::vmm {

/// Who the programs of a machine are. Without a user: root.
struct MachineUser {
  std::optional<uint32_t> uid;
  uint32_t gid = 0;
};

/// The directory for a sandbox: `options.directory` and a short name, the same for the same names.
std::string SandboxDirectory(const VmmOptions& options, std::string_view ns,
                             std::string_view sandbox);

/// Makes `directory`, mode 0700, and what it lies in. Again: nothing.
Status MakeSandboxDirectory(const std::string& directory);

/// What is mounted on `path` itself is taken away, detached: a process that is being killed may
/// have files of it open yet. Nothing there: success.
Status DetachMount(const std::string& path);

/// Thread: any; plain data.
class MachineDirectory {
 public:
  explicit MachineDirectory(std::string directory) : directory_(std::move(directory)) {}

  /// Empty, and `user` gets to it, not to what else lies in the directory. `vmm_listens`: the VMM
  /// makes sockets in `s` itself. Again: anew.
  Status Make(const MachineUser& user, bool vmm_listens) const;
  /// The files of `other`, whose VM runs as `user`, are here from now on, and are there no more.
  /// On failure they may be in neither place.
  Status TakeFrom(const MachineDirectory& other, const MachineUser& user) const;
  /// Its VMM has a root of its own, in which the directory stays where it is now, wherever its
  /// files are taken later.
  Status NoteOwnRoot() const;
  /// `file`, a socket of the node's, is in the directory under `name`, too: by the path that its
  /// VMM finds it. It is the VMM that connects, so that an engine that dies ends no connection.
  /// Again: the same.
  Result<std::string> Show(const std::string& file, const std::string& name) const;
  /// Which process its VMM is, or its vsock device: for whoever finds the directory, and no record.
  Status Note(std::string_view name, const HostProcess& process) const;
  /// Kills those that were noted. None, or ended: success. Errors: kDeadlineExceeded: the kernel
  /// has not ended one yet. Blocks: up to ten seconds.
  Status EndNoted() const;
  /// Again: nothing. Removes the directory too, where nothing else is in it.
  Status Remove() const;

  /// A listener at that path, which `user` may connect to; what was there before is gone.
  static Result<UniqueFd> Listen(const std::string& path, const MachineUser& user);
  /// `user` may connect to the socket, or write the file. A link is not followed.
  static Status Give(const std::string& path, const MachineUser& user);

  /// The sandbox's.
  const std::string& sandbox() const { return directory_; }

  std::string vm() const { return directory_ + "/vm"; }

  std::string console() const { return vm() + "/console"; }

  std::string vmm_log() const { return vm() + "/vmm.log"; }

  std::string vsock_log() const { return vm() + "/vsock.log"; }

  std::string control() const { return vm() + "/control"; }

  std::string front_end() const { return vm() + "/front-end"; }

  std::string sockets() const { return vm() + "/s"; }

  std::string hosts() const { return sockets() + "/v"; }

  std::string port(uint32_t number) const;

 private:
  /// Empty yet.
  Status MakePlace(const MachineUser& user) const;

  std::string directory_;
};

}  // namespace gantry::vmm
