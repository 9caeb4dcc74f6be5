// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/sentry.h"

#include <utility>

#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

constexpr const char* kRootName = "start-root";
constexpr const char* kNetworkName = "network";
constexpr const char* kPauseName = "pause";
constexpr const char* kResumeName = "resume";
/// No container's id: who wants the sandbox to stand still while it is saved.
constexpr const char* kSaver = "";
/// It is to be as it was also where the call has no time left.
constexpr std::chrono::seconds kResumeLimit{10};

}  // namespace

Error ToError(const urpc::Failure& failure, std::string_view what) {
  Error error = urpc::ToError(failure);
  const bool workload = failure.cause == urpc::Cause::kWorkload;
  error.message = Format("{}: {}", what, workload ? failure.text : error.message);
  return error;
}

Status Sentry::Recover(SentryState state, Deadline deadline) {
  LeaveStandstill(CallKind::kSignalAll, kSignalName, deadline);
  LeaveStandstill(CallKind::kStandstill, kSaveName, deadline);
  GANTRY_TRY(CallSlots::Slot slot,
             TakeSlot(CallKind::kStandstill, "recover the sandbox", deadline));
  const MutexLock lock(mutex_);
  state_ = std::move(state);
  // Whoever had it saved is gone.
  state_.wanted.erase(kSaver);
  const auto root = TakeUp(kRootName, "take up the start of the sandbox", true, deadline);
  const auto network = TakeUp(kNetworkName, "take up the network of the sandbox", false, deadline);
  if (!state_.started) {
    GANTRY_TRY(const auto started, root);
    // One that has ended since, and has not answered: whether it was asked nobody knows, and what
    // there is to tell is its end.
    state_.started = started.value_or(false);
    GANTRY_CHECK_OK(started ? save_(state_) : Status());
  }
  Settle(kRootName);
  if (!state_.started) {
    GANTRY_TRY(const auto has_network, network);
    has_network_ = has_network.value_or(false);
  } else if (auto connection = urpc::Connection::Open(socket(), deadline)) {
    WatchRoot(std::move(*connection));
  }
  if (!has_network_) {
    Settle(kNetworkName);
  }
  // In this order: of one that is stored behind the other's name, `Switch` keeps it so.
  const char* const what = "take up the pause of the sandbox";
  GANTRY_TRY(const auto paused, TakeUp(kPauseName, what, std::nullopt, deadline));
  state_.stopped = state_.stopped || paused.value_or(false);
  GANTRY_TRY(const auto resumed, TakeUp(kResumeName, what, std::nullopt, deadline));
  state_.stopped = state_.stopped && !resumed.value_or(false);
  IgnoreError(SaveSwitches(), "what is stored says it again");
  if (state_.stopped && state_.wanted.empty()) {
    // Who had asked for it never heard that it was done; if he asks again, it is done again.
    return Switch(nullptr, deadline);
  }
  if (!state_.stopped && !state_.wanted.empty()) {
    // `WhileItRuns` was cut short.
    return Switch(&slot, deadline);
  }
  if (state_.stopped) {
    // Whether that pause was answered nobody has written down.
    late_pause_.emplace(std::move(slot));
  }
  return {};
}

Result<std::optional<bool>> Sentry::TakeUp(const char* name, const char* what,
                                           std::optional<bool> if_gone, Deadline deadline) {
  auto call = DurableCall::TakeUp(context_, name);
  if (!call && call.error().code != Code::kNotFound) {
    return std::unexpected(std::move(call).error());
  }
  const auto sent = call ? call->WasSent(deadline) : urpc::Outcome<bool>(false);
  if (sent && !*sent) {
    if (call) {
      call->Settle();
    }
    return std::nullopt;
  }
  const bool gone = !sent && sent.error().cause == urpc::Cause::kGone;
  const auto done = sent ? call->Peek(what, deadline).has_value() : gone ? if_gone : std::nullopt;
  if (done || if_gone) {
    unsaved_.emplace(name, *std::move(call));
  }
  return done ? Result<std::optional<bool>>(done) : std::unexpected(ToError(sent.error(), what));
}

Status Sentry::SaveSwitches() {
  if (unsaved_.contains(kPauseName) || unsaved_.contains(kResumeName)) {
    GANTRY_CHECK_OK(save_(state_));
    // The pause first: one that is left alone would count as the later of the two.
    Settle(kPauseName);
    Settle(kResumeName);
  }
  return {};
}

void Sentry::Settle(std::string_view name) {
  if (auto call = unsaved_.extract(name)) {
    call.mapped().Settle();
  }
}

bool Sentry::root_started() const {
  const MutexLock lock(mutex_);
  return state_.started;
}

/// Of what was not done, or nobody knows of, nothing stays stored.
urpc::Outcome<void> Sentry::KeepAnswer(const char* name, const urpc::Request& request,
                                       Deadline deadline) {
  GANTRY_TRY(DurableCall call, DurableCall::Begin(context_, socket(), name, request, deadline));
  if (const auto answer = call.Peek(request.method, deadline); !answer) {
    call.Settle();
    return std::unexpected(answer.error());
  }
  unsaved_.emplace(name, std::move(call));
  return {};
}

urpc::Outcome<void> Sentry::SendNetwork(const NetworkSetup& network, Deadline deadline) {
  std::vector<int> fds;
  fds.reserve(network.sockets.size());
  for (const UniqueFd& socket : network.sockets) {
    fds.push_back(socket.get());
  }
  auto set = manager_.SetNetworkArgs(network.args, fds, deadline);
  if (set || set.error().text != "unknown method") {
    return set;
  }
  // Releases before 2026-07, which make the links at once.
  const urpc::Request request{
      .method = kCreateLinks, .arg = network.args_without_route_mtu, .fds = fds};
  return KeepAnswer(kNetworkName, request, deadline);
}

Status Sentry::SetNetwork(const NetworkSource& take_network, Deadline deadline) {
  if (has_network_) {
    return {};
  }
  GANTRY_TRY(const std::optional<NetworkSetup> network, take_network());
  if (network) {
    if (const auto sent = SendNetwork(*network, deadline); !sent) {
      return std::unexpected(ToError(sent.error(), "hand over the network"));
    }
  }
  has_network_ = true;
  return {};
}

urpc::Outcome<void> Sentry::SendStart(std::span<const int> image, Deadline deadline) {
  const std::string root = StartRootArg(id_);
  const urpc::Request request{.method = image.empty() ? kStartRoot : kRestore,
                              .arg = image.empty() ? std::string_view(root) : kRestoreArg,
                              .fds = image};
  return KeepAnswer(kRootName, request, deadline);
}

Status Sentry::StartRoot(const NetworkSource& take_network, Deadline deadline,
                         std::span<const int> image) {
  const MutexLock lock(mutex_);
  if (state_.started) {
    return {};
  }
  GANTRY_CHECK_OK(SetNetwork(take_network, deadline));
  // Once the root has ended, the sentry takes no new connection.
  auto wait = urpc::Connection::Open(socket(), deadline);
  if (!wait) {
    return std::unexpected(ToError(wait.error(), "start the sandbox"));
  }
  if (const auto done = SendStart(image, deadline); !done) {
    // Of one that came too late nobody knows: it is not asked again.
    state_.started = done.error().cause == urpc::Cause::kDeadline;
    return std::unexpected(
        ToError(done.error(), image.empty() ? "start the sandbox" : "restore the sandbox"));
  }
  state_.started = true;
  // If it cannot be saved now, the answer is there for the next engine.
  if (save_(state_)) {
    Settle(kRootName);
    Settle(kNetworkName);
  }
  if (!image.empty()) {
    // A sentry that has been restored serves no connection from before.
    wait = urpc::Connection::Open(socket(), deadline);
  }
  if (wait) {
    WatchRoot(std::move(*wait));
  } else {
    // It has ended since, and leaves as soon as nobody is connected.
    manager_.client().Hangup();
  }
  return {};
}

/// As soon as it answers, nobody may be connected any more.
void Sentry::WatchRoot(urpc::Connection connection) {
  constexpr std::chrono::seconds kSendLimit{5};
  const Deadline deadline = std::chrono::steady_clock::now() + kSendLimit;
  if (!ContainerManager::SendWait(connection, id_, deadline)) {
    return;
  }
  const int fd = connection.fd().get();
  root_wait_.emplace(std::move(connection));
  auto watch = context_.WatchReadable(fd, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->Hangup();
    }
  });
  if (watch) {
    root_watch_ = std::move(*watch);
  }
}

void Sentry::Hangup() {
  std::unique_ptr<Watch> watch;
  {
    const MutexLock lock(mutex_);
    watch = std::move(root_watch_);
  }
  // Its descriptor is open until the watch is gone.
  watch.reset();
  {
    const MutexLock lock(mutex_);
    // They are there yet where the start could not be saved. A pause or resume that could not
    // goes with the sandbox: whoever asked for it may ask again.
    Settle(kRootName);
    Settle(kNetworkName);
    root_wait_.reset();
    late_pause_.reset();
    manager_.client().Hangup();
  }
  // Calls that it never answered.
  slots_.Clear();
}

Status Sentry::Switch(CallSlots::Slot* slot, Deadline deadline) {
  const bool stopped = slot != nullptr;
  const std::string_view method = stopped ? kPause : kResume;
  const char* name = stopped ? kPauseName : kResumeName;
  const std::string what = Format("{} the sandbox", name);
  if (stopped) {
    // A resume that is only stored would count as the later of the two.
    GANTRY_CHECK_OK(SaveSwitches());
  }
  auto call = DurableCall::Begin(context_, socket(), name, {.method = method}, deadline);
  if (!call) {
    return std::unexpected(ToError(call.error(), what));
  }
  const auto answer = call->Peek(method, deadline);
  // Of one before it with that name, which could not be saved, nobody need know.
  unsaved_.erase(name);
  unsaved_.emplace(name, *std::move(call));
  if (answer || urpc::IsLate(answer)) {
    state_.stopped = stopped;
  }
  if (!stopped && answer) {
    // A pause that came to no end goes on until the next one, which has a slot of its own.
    late_pause_.reset();
  } else if (stopped && urpc::IsLate(answer)) {
    late_pause_.emplace(std::move(*slot));
  }
  GANTRY_CHECK_OK(SaveSwitches());
  return answer ? Status() : Status(std::unexpected(ToError(answer.error(), what)));
}

Status Sentry::Pause(const std::string& container, Deadline deadline) {
  GANTRY_TRY(CallSlots::Slot slot,
             TakeSlot(CallKind::kStandstill, Format("pause container '{}'", container), deadline));
  const MutexLock lock(mutex_);
  if (!state_.started) {
    return Fail(Code::kFailedPrecondition, "pause container '{}': its sandbox has not been started",
                container);
  }
  return PauseFor(container, slot, deadline);
}

Status Sentry::PauseFor(const std::string& container, CallSlots::Slot& slot, Deadline deadline) {
  const bool first = state_.wanted.insert(container).second;
  Status paused = state_.stopped ? (first ? save_(state_) : Status()) : Switch(&slot, deadline);
  if (paused) {
    return {};
  }
  state_.wanted.erase(container);
  if (state_.stopped && state_.wanted.empty() && paused.error().code != Code::kDeadlineExceeded) {
    // It was done and could not be kept.
    IgnoreError(Switch(nullptr, std::chrono::steady_clock::now() + kResumeLimit),
                "who resumes it, or kills it, tries again");
  } else {
    IgnoreError(save_(state_), "then the next engine pauses it, and who asks again finds it so");
  }
  return paused;
}

Status Sentry::Resume(const std::string& container, Deadline deadline) {
  const MutexLock lock(mutex_);
  const bool wanted = state_.wanted.erase(container) > 0;
  if (!state_.wanted.empty() || !state_.stopped) {
    return wanted ? save_(state_) : Status();
  }
  Status resumed = Switch(nullptr, deadline);
  if (!resumed && state_.stopped && wanted) {
    state_.wanted.insert(container);
  }
  return resumed;
}

Status Sentry::WhileItRuns(const std::function<Status()>& act, Deadline deadline) {
  GANTRY_TRY(CallSlots::Slot slot,
             TakeSlot(CallKind::kStandstill, "pause the sandbox again", deadline));
  bool stood = false;
  Status done;
  {
    const MutexLock lock(mutex_);
    stood = state_.stopped;
    if (stood) {
      done = Switch(nullptr, deadline);
    }
  }
  if (done) {
    done = act();
  }
  const MutexLock lock(mutex_);
  if (!stood || state_.stopped || state_.wanted.empty()) {
    return done;
  }
  Status stands = Switch(&slot, std::chrono::steady_clock::now() + kResumeLimit);
  return done ? stands : done;
}

Status Sentry::Checkpoint(std::string_view arg, std::span<const int> files,
                          const std::function<Status()>& saved, bool ends, Deadline deadline) {
  const std::string what = Format("checkpoint container '{}'", id_);
  GANTRY_TRY(CallSlots::Slot slot, TakeSlot(CallKind::kStandstill, what, deadline));
  {
    const MutexLock lock(mutex_);
    if (!state_.started) {
      return Fail(Code::kFailedPrecondition, "{}: its sandbox has not been started", what);
    }
    if (state_.wanted.contains(kSaver)) {
      return Fail(Code::kFailedPrecondition, "{}: its sandbox is being saved", what);
    }
    GANTRY_CHECK_OK(PauseFor(kSaver, slot, deadline));
  }
  // Not with the lock held: it takes as long as there is memory, and signals need not wait.
  // The sentry pauses once more by itself: in the same slot.
  const auto written =
      CallInSlot(slot, kSaveName, {.method = kCheckpoint, .arg = arg, .fds = files}, deadline);
  Status done = written ? saved() : Status(std::unexpected(ToError(written.error(), what)));
  if (done && ends) {
    return done;
  }
  Status resumed = Resume(kSaver, std::chrono::steady_clock::now() + kResumeLimit);
  return done ? resumed : done;
}

}  // namespace gantry::gvisor
