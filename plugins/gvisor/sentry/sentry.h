// SPDX-License-Identifier: Apache-2.0
//
// One running sentry, as its containers use it. The calls that kill or hang a sentry when
// they come in a wrong state are made here only, or in a slot that is had here:
//   StartSubcontainer before StartRoot has succeeded ends a sentry of 20240729;
//   StartRoot a second time never returns there;
//   the links of a network a second time are refused there, and the start fails;
//   Resume without a Pause ends every sentry, and each Pause needs a Resume of its own;
//   Restore comes in place of StartRoot, as once as that;
//   StartSubcontainer and ExecuteAsync while the sandbox comes to a stop end it (call_slots.h);
//   StartSubcontainer ends it where one in the same pid namespace has failed and that container
//   has not been destroyed since, be it the same one.
// What has been done is kept over a restart of the engine (durable_call.h), so that none of
// them comes by a repetition either.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/gvisor/sentry/call_slots.h"
#include "plugins/gvisor/sentry/container_manager.h"
#include "plugins/gvisor/sentry/durable_call.h"

namespace gantry::gvisor {

/// What a sentry cannot be asked, once it has ended or at all.
struct SentryState {
  /// Its root container.
  bool started = false;
  /// Which containers want the sandbox to stand still, and whether it does.
  std::set<std::string> wanted;
  bool stopped = false;
};

/// A pod's network: `NetworkArgs`, and its packet sockets.
struct NetworkSetup {
  std::string args;
  /// For releases before 2026-07, which are told by another call: those that do not know a route's
  /// MTU are among them.
  std::string args_without_route_mtu;
  std::vector<UniqueFd> sockets;
};

/// Thread: any.
class Sentry : public std::enable_shared_from_this<Sentry> {
 public:
  /// `save` is called with a lock held when the state has changed; it must not call back.
  using Save = std::function<Status(const SentryState&)>;

  /// `id`: of the root container, as it was booted.
  Sentry(SandboxContext& context, std::string id, std::string socket, Save save)
      : context_(context),
        id_(std::move(id)),
        socket_(std::move(socket)),
        manager_(socket_),
        save_(std::move(save)) {}

  ContainerManager& manager() { return manager_; }

  const std::string& socket() const { return socket_; }

  /// After a restart of the engine: finds out what has been done. `state`: as saved last.
  /// Errors: kUnavailable: it has ended.
  Status Recover(SentryState state, Deadline deadline);

  /// Gives what network it is to have; none: it has the node's. Called with a lock held: it
  /// must not call back.
  using NetworkSource = std::function<Result<std::optional<NetworkSetup>>()>;

  /// Starts the root container. Again: success. `take_network` runs before, as often as the
  /// sentry has not been handed it. Errors: kUnavailable: it has ended; of `take_network`.
  /// `image`: the files of a saved sandbox that it is to be restored from in place of that.
  Status StartRoot(const NetworkSource& take_network, Deadline deadline,
                   std::span<const int> image = {});
  bool root_started() const;

  /// A process that has been started: the call is answered, and to be settled once what comes of
  /// it is kept; to ask how it ends, on the other one nothing has been sent.
  struct Started {
    DurableCall call;
    DurableCall wait;
  };

  /// Starts a sub-container. Errors: kFailedPrecondition before the root has started. The container
  /// is to be made again (`ContainerManager::CreateSubcontainer`) after any; of one that may have
  /// started yet, or before the sentry ended, both calls stay stored.
  Result<Started> Start(const Subcontainer& container, std::span<const int> fds,
                        const CallNames& names, Deadline deadline);

  /// After a `Start` of another engine's has been refused, with the same.
  void ForgetFailed(const std::string& container, Deadline deadline);

  /// A start of another engine's, without an answer: is settled, and waited for as one of its own.
  void LeaveStart(DurableCall call);

  /// Starts a further process; `call` has its number. Errors: nothing stays stored.
  urpc::Outcome<Started> Execute(const ExecArgs& args, std::span<const int> fds,
                                 const CallNames& names, Deadline deadline);

  /// A process whose end nobody has to be told after a restart of the engine.
  struct Executed {
    int32_t pid = 0;
    /// On which it was started.
    urpc::Connection connection;
  };

  urpc::Outcome<Executed> Execute(const ExecArgs& args, std::span<const int> fds,
                                  Deadline deadline);

  /// To every process of a container. Errors: as `ContainerManager::Signal`.
  urpc::Outcome<void> SignalAll(const std::string& container, uint32_t signal, Deadline deadline);

  /// The whole sandbox stands still as long as one container is to. Again: success.
  Status Pause(const std::string& container, Deadline deadline);
  Status Resume(const std::string& container, Deadline deadline);

  /// Does something for which it must not stand still: if it does, it runs meanwhile.
  /// Errors: of that; the sentry's.
  Status WhileItRuns(const std::function<Status()>& act, Deadline deadline);

  /// Saves the sandbox into `files`, and calls `saved` then; it stands still until both are
  /// done, and then does what it did. `arg`: `CheckpointArg`. `ends`: `saved` kills it, so that
  /// it does not go on; where the call fails, it does.
  /// Errors: kFailedPrecondition: not started, or it is being saved; of `saved`; the sentry's.
  Status Checkpoint(std::string_view arg, std::span<const int> files,
                    const std::function<Status()>& saved, bool ends, Deadline deadline);

  /// The root has ended: the sentry leaves as soon as nobody is connected.
  void Hangup();

 private:
  /// In the store.
  static constexpr const char* kSignalName = "signal-all";
  static constexpr const char* kSaveName = "checkpoint";

  Result<CallSlots::Slot> TakeSlot(CallKind kind, std::string_view what, Deadline deadline);
  /// Pauses it in that slot, which is somebody else's afterwards where no answer came; null:
  /// resumes it.
  Status Switch(CallSlots::Slot* slot, Deadline deadline) GANTRY_REQUIRES(mutex_);
  Status PauseFor(const std::string& container, CallSlots::Slot& slot, Deadline deadline)
      GANTRY_REQUIRES(mutex_);
  Status SetNetwork(const NetworkSource& take_network, Deadline deadline) GANTRY_REQUIRES(mutex_);
  urpc::Outcome<void> SendNetwork(const NetworkSetup& network, Deadline deadline)
      GANTRY_REQUIRES(mutex_);
  urpc::Outcome<void> SendStart(std::span<const int> image, Deadline deadline)
      GANTRY_REQUIRES(mutex_);
  /// Whether what another engine asked for was done; it is unsaved from then on. None: it was not
  /// asked for. `if_gone`: what is said of a sentry that has ended; none: that is an error.
  Result<std::optional<bool>> TakeUp(const char* name, const char* what,
                                     std::optional<bool> if_gone, Deadline deadline)
      GANTRY_REQUIRES(mutex_);
  /// A standstill of another engine's, if one is stored.
  void LeaveStandstill(CallKind kind, const char* name, Deadline deadline);
  Status CheckStarts(std::string_view what) const;
  /// What has failed of starts that were left is forgotten. In a slot of theirs.
  urpc::Outcome<void> SettleStart(CallSlots::Slot& slot, Deadline deadline);
  urpc::Outcome<Started> SendStart(CallSlots::Slot& slot, const Subcontainer& container,
                                   std::span<const int> fds, const CallNames& names,
                                   Deadline deadline);
  urpc::Outcome<Started> Open(const CallNames& names, Deadline deadline);
  /// Where the answer does not come in time the slot is left, and else the call is settled.
  urpc::Outcome<void> CallInSlot(CallSlots::Slot& slot, const char* name,
                                 const urpc::Request& request, Deadline deadline);
  urpc::Outcome<void> KeepAnswer(const char* name, const urpc::Request& request, Deadline deadline)
      GANTRY_REQUIRES(mutex_);
  void Settle(std::string_view name) GANTRY_REQUIRES(mutex_);
  Status SaveSwitches() GANTRY_REQUIRES(mutex_);
  void WatchRoot(urpc::Connection connection) GANTRY_REQUIRES(mutex_);

  SandboxContext& context_;
  const std::string id_;
  const std::string socket_;
  ContainerManager manager_;
  const Save save_;
  /// Taken before any lock of this.
  CallSlots slots_;
  /// Held during the calls that are guarded here.
  mutable Mutex mutex_;
  SentryState state_ GANTRY_GUARDED_BY(mutex_);
  /// Of a pause that was not answered in time, or perhaps not: until it is resumed.
  std::optional<CallSlots::Slot> late_pause_ GANTRY_GUARDED_BY(mutex_);
  /// Of one that has not started.
  bool has_network_ GANTRY_GUARDED_BY(mutex_) = false;
  /// Calls that stay stored, as the state that they have led to is not saved yet.
  std::map<std::string_view, DurableCall> unsaved_ GANTRY_GUARDED_BY(mutex_);
  std::optional<urpc::Connection> root_wait_ GANTRY_GUARDED_BY(mutex_);
  std::unique_ptr<Watch> root_watch_ GANTRY_GUARDED_BY(mutex_);
};

/// For an answer of the sentry's: `what` is what was attempted, as `start container 'x'`.
Error ToError(const urpc::Failure& failure, std::string_view what);

}  // namespace gantry::gvisor
