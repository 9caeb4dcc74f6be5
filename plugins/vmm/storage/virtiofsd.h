// SPDX-License-Identifier: Apache-2.0
//
// virtiofsd, which shows the shared directory to the guest: a process of the keeper's, one for each
// VM, that ends with the VMM's connection. The guest speaks to it without anybody between them, so
// it has what it needs and no more: the shared directory is its root, in user, mount, pid, IPC and
// network namespaces of its own, and of capabilities it keeps those about files. Its own
// seccomp filter is on. It has all ids, since images have files of many users: see README.md.
//
// It is not asked to make the namespaces itself (`--sandbox namespace`): that takes it
// CAP_SYS_ADMIN, and a second process.
// Source: virtiofsd 1.13, README.md, "Sandboxing" and "Capabilities".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/storage/options.h"

namespace gantry::vmm {

struct VirtiofsdRequest {
  StorageOptions options{};
  /// The shared directory; a shared mount.
  std::string shared{};
  /// Where the VMM is to connect; nothing is there.
  std::string socket{};
  std::vector<std::string> cgroups{};
  /// On a worker, once. May be empty.
  std::function<void(Error why)> ended{};
};

/// Thread: any.
class Virtiofsd {
 public:
  static constexpr const char* kTag = "virtiofsd";

  /// Errors: kFailedPrecondition: it is not installed; those of `Spawn`. Nothing is left then.
  static Result<std::unique_ptr<Virtiofsd>> Start(SandboxContext& context,
                                                  const VirtiofsdRequest& request);
  /// Of an engine before this one; it may have ended. Errors: kNotFound: it was never started.
  static Result<std::unique_ptr<Virtiofsd>> Recover(SandboxContext& context,
                                                    const VirtiofsdRequest& request);
  Virtiofsd(const Virtiofsd&) = delete;
  Virtiofsd& operator=(const Virtiofsd&) = delete;
  /// Its end is told to nobody from now on; it runs.
  ~Virtiofsd();

  const HostProcess& process() const { return *process_; }

  /// Its end is told to nobody from now on. Again: success. Errors: kDeadlineExceeded.
  /// Blocks: until it has ended, some seconds at most.
  Status Stop();

 private:
  struct End;

  Virtiofsd(SandboxContext& context, std::shared_ptr<HostProcess> process, std::shared_ptr<End> end)
      : context_(context), process_(std::move(process)), end_(std::move(end)) {}

  static Result<std::unique_ptr<Virtiofsd>> Watched(SandboxContext& context,
                                                    const std::shared_ptr<HostProcess>& process,
                                                    UniqueFd log, const VirtiofsdRequest& request);

  SandboxContext& context_;
  std::shared_ptr<HostProcess> process_;
  std::shared_ptr<End> end_;
};

enum class UserNamespace {
  /// One of its own, with all ids of the node: it is root over files, and over nothing else.
  kOwn,
  /// Where the node has none to give.
  kNodes,
};

/// How it is started; `listener` and `log` become its own. Errors: as `Virtiofsd::Start`.
Result<SpawnRequest> DescribeVirtiofsd(const VirtiofsdRequest& request, UserNamespace users,
                                       UniqueFd listener, UniqueFd log);

}  // namespace gantry::vmm
