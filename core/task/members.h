// SPDX-License-Identifier: Apache-2.0
//
// Containers and the sandboxes that they stand in: the first of a group makes
// one, the last ends it, unless it is a pod's.
#pragma once

#include <functional>
#include <string>

#include <gantry/error.h>
#include <gantry/sandbox.h>

#include "core/async/co.h"
#include "core/task/containers.h"

namespace gantry::task {

class BackendCalls;
class Instances;
class Pods;
class Records;
class Sandboxes;
struct Parts;

/// Thread: loop.
class Members {
 public:
  /// Owner: all of them outlive it.
  Members(const Parts& parts, const Instances& instances, Containers& containers, Records& records,
          BackendCalls& calls, Sandboxes& sandboxes, const Pods& pods)
      : parts_(parts),
        instances_(instances),
        containers_(containers),
        records_(records),
        calls_(calls),
        sandboxes_(sandboxes),
        pods_(pods) {}

  /// `asked`: by its own options; `asked_of_group`: by these and its group's.
  std::string ChooseHandler(const Container& container, const std::string& asked,
                            const std::string& asked_of_group) const;
  /// Errors: kInvalidArgument: the sandbox is of another handler.
  static Status CheckHandler(const Container& container, const SandboxEntry& sandbox);

  /// The one of its group, which is made where there is none. `blob`: of one that is taken up
  /// again; null: it is made. `then`: called on the worker that has opened it; not where it stands
  /// already. The container is no member yet.
  async::Task<Result<SandboxEntryPtr>> OpenSandbox(ContainerPtr container, const std::string* blob,
                                                   std::function<void()> then = {});
  void JoinMembers(Container& container, SandboxEntryPtr entry);
  /// Names the container in its pod's bundle.
  async::Task<Status> Enlist(const Container& container);
  /// The last one takes the sandbox along. Of one that stands in none: nothing.
  async::Task<void> LeaveSandbox(Container& container);
  /// Ends what its sandbox has, where nobody has that any more.
  void AbandonSandbox(const Container& container);

 private:
  /// The place for one, before anything of it is made. `blob`: as in `OpenSandbox`.
  async::Task<Result<SandboxEntryPtr>> PrepareSandbox(ContainerPtr container,
                                                      const std::string* blob);
  void ProtectMembers(const SandboxEntry& entry);
  async::Task<void> HandOverBlob(const Container& from, SandboxEntry& entry);

  const Parts& parts_;
  const Instances& instances_;
  Containers& containers_;
  Records& records_;
  BackendCalls& calls_;
  Sandboxes& sandboxes_;
  const Pods& pods_;
};

}  // namespace gantry::task
