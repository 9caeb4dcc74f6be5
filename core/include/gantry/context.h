// SPDX-License-Identifier: Apache-2.0
//
// What the core lends to a sandbox of a backend: processes of the host,
// descriptors that outlive the engine, state, watches, log, counters.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

namespace gantry {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Ends the watch when destroyed; its callback is not running and will not run
/// when the destructor returns, unless it is destroyed by that callback.
class Watch {
 public:
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;

 protected:
  Watch() = default;
};

/// A descriptor, and the name that it is to be stored under.
struct NamedFd {
  std::string_view name;
  const UniqueFd& fd;
};

/// Outlives its sandbox object. Thread: any. A backend calls no method of it
/// while holding a lock that the backend's own methods take.
class SandboxContext {
 public:
  SandboxContext(const SandboxContext&) = delete;
  SandboxContext& operator=(const SandboxContext&) = delete;
  virtual ~SandboxContext() = default;

  /// The keeper starts a process. Errors name the step that failed; kNotFound
  /// where the program does not exist. Thread: workers.
  virtual Result<std::shared_ptr<HostProcess>> Spawn(SpawnRequest request) = 0;
  /// A process that has become, or will become, the keeper's child because its
  /// parent ended. Found too when it has ended already.
  /// Errors: kNotFound: there is and was no such process. Thread: workers.
  virtual Result<std::shared_ptr<HostProcess>> Adopt(HostPid pid) = 0;

  /// The same, and it has a tag from then on, as if it had been spawned under it: for what a
  /// helper has borne as the keeper's child (clone(2), CLONE_PARENT), or orphaned, and an engine
  /// after this one has to find. `tag`: 1 to 256 bytes, with what the core puts before it.
  /// Errors: kNotFound where the keeper is not, and was not, above that process;
  /// kFailedPrecondition where the keeper is of before it could. Thread: workers.
  virtual Result<std::shared_ptr<HostProcess>> AdoptAs([[maybe_unused]] HostPid pid,
                                                       [[maybe_unused]] std::string_view tag) {
    return Fail(Code::kUnimplemented, "adopt a process under a tag: not here");
  }

  /// The same, for a process known from before a restart of the engine.
  virtual Result<std::shared_ptr<HostProcess>> Recover(HostPid pid, uint64_t start_time) = 0;
  /// What an engine before this one spawned, or adopted, under `tag`. Null: never. Else it runs,
  /// or has ended (`HostProcess::Ended`), also where that end was told and acknowledged before:
  /// the keeper remembers the ends of the last 1,024 processes with a tag, and of what ended
  /// before those the answer is null. Of several under one tag: the newest. Again: null.
  ///
  /// A tag's scope is the sandbox that spawns: `init` of two sandboxes are two tags, also where
  /// they have one id, one after the other. What a backend has for no sandbox has one scope for
  /// each backend.
  ///
  /// kAborted, as the answer of a `Recover...`, says that what is to be recovered never came to
  /// be, and that nothing of it is left: so after "never" here, or after the backend has ended
  /// and removed what there is. After an end it is wrong: that end is the process's.
  /// Thread: workers.
  virtual std::shared_ptr<HostProcess> FindSpawned(std::string_view tag) = 0;

  /// Calls `ready` on a worker when `fd` is readable or hung up, one call at a
  /// time, again as long as that holds. Owner: `fd` stays the caller's and
  /// must be open as long as the watch.
  virtual Result<std::unique_ptr<Watch>> WatchReadable(int fd, std::function<void()> ready) = 0;

  /// The sandbox is that process of the host: its pid stands for the sandbox in
  /// containerd's eyes, and for CRI its namespaces are the pod's; its end is the
  /// sandbox's. Of a pod without a pause container (`SandboxKind::kPauseless`)
  /// only. Again: after a restart of the engine. Errors: kFailedPrecondition for
  /// another kind or another process.
  virtual Status Bind(std::shared_ptr<HostProcess> process) = 0;
  /// For such a pod that is no process of the host: the live host pid that stands
  /// for it.
  virtual void SetPid(HostPid pid) = 0;
  /// The sandbox has ended. To be called by backends that did not `Bind`. Again:
  /// a second report is dropped.
  virtual void Exited(ExitStatus status) = 0;

  /// Puts a descriptor where it outlives the engine. Names are per sandbox, at
  /// most 64 characters. Again: replaces. Errors: kResourceExhausted.
  virtual Status Store(std::string_view name, const UniqueFd& fd) = 0;

  /// The same of several, at most 16, in the time of one. Errors: as `Store`; some may be
  /// stored then.
  virtual Status StoreAll(std::span<const NamedFd> all) {
    for (const NamedFd& one : all) {
      if (Status stored = Store(one.name, one.fd); !stored) {
        return stored;
      }
    }
    return {};
  }

  /// A copy of a stored descriptor; it stays stored. Of a non-blocking socket that listens
  /// and on which a connection waits: of that connection, which from then on is what is
  /// stored.
  /// Errors: kNotFound.
  virtual Result<UniqueFd> Take(std::string_view name) = 0;
  virtual void Drop(std::string_view name) = 0;

  /// Keeps the sandbox's state of the backend, at most `kMaxSaved`; on disk when
  /// this returns. Thread: workers.
  virtual Status Save(std::string blob) = 0;

  /// A line in the engine's log, with the sandbox's id.
  virtual void Log(LogLevel level, std::string_view message) = 0;
  /// Adds to a counter that operators can read, named `backend.name`.
  virtual void Count(std::string_view name, uint64_t amount = 1) = 0;

  /// What is left of the time for the backend's call that this thread runs: of
  /// the core's own limit or of the caller's, whichever is shorter. 0: none. The
  /// largest value: there is no limit, or the thread runs no call of the core.
  virtual std::chrono::milliseconds TimeLeft() const { return std::chrono::milliseconds::max(); }

 protected:
  SandboxContext() = default;
};

}  // namespace gantry
