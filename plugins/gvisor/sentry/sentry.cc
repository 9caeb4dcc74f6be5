// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/sentry.h"

#include <utility>

#include <gantry/format.h>

#include "plugins/gvisor/sentry/durable_call.h"

namespace gantry::gvisor {
namespace {

constexpr const char* kRootName = "start-root";
constexpr const char* kNetworkName = "network";
constexpr const char* kPauseName = "pause";
constexpr const char* kResumeName = "resume";
constexpr const char* kSaveName = "checkpoint";
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
  late_signal_ = LeaveStandstill(kSignalName, deadline);
  LeaveStandstill(kSaveName, deadline);
  GANTRY_TRY(Turns::Turn turn, TurnToStandStill("recover the sandbox", deadline));
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
  // Whoever had it saved is gone.
  state_.wanted.erase(kSaver);
  if (!state_.started) {
    GANTRY_CHECK_OK(TakeUpStart(deadline));
  }
  if (state_.started) {
    context_.Drop(kNetworkName);
    if (auto connection = urpc::Connection::Open(socket(), deadline)) {
      WatchRoot(std::move(*connection));
    }
  } else {
    GANTRY_CHECK_OK(TakeUpNetwork(deadline));
  }
  // In this order: of one that is stored behind the other's name, `Switch` keeps it so.
  GANTRY_CHECK_OK(TakeUpSwitch(kPauseName, true, deadline));
  GANTRY_CHECK_OK(TakeUpSwitch(kResumeName, false, deadline));
  IgnoreError(SaveSwitches(), "what is stored says it again");
  if (state_.stopped && state_.wanted.empty()) {
    // Who had asked for it never heard that it was done; if he asks again, it is done again.
    return Switch(nullptr, deadline);
  }
  if (!state_.stopped && !state_.wanted.empty()) {
    // `WhileItRuns` was cut short.
    return Switch(&turn, deadline);
  }
  if (state_.stopped) {
    // Whether that pause was answered nobody has written down.
    late_pause_.emplace(std::move(turn));
  }
  return {};
}

Status Sentry::TakeUpStart(Deadline deadline) {
  auto root = TakeUpCall(context_, kRootName, deadline);
  if (!root && root.error().cause != urpc::Cause::kGone) {
    return std::unexpected(ToError(root.error(), "take up the start of the sandbox"));
  }
  if (root && !*root) {
    return {};
  }
  // One that has ended since, and has not answered: whether it was asked nobody knows, and what
  // there is to tell is its end.
  state_.started = !root || (*root)->Peek(kStartRoot, deadline).has_value();
  return SaveAndDrop(kRootName);
}

Status Sentry::TakeUpNetwork(Deadline deadline) {
  const auto call = TakeUpCall(context_, kNetworkName, deadline);
  if (!call && call.error().cause != urpc::Cause::kGone) {
    return std::unexpected(ToError(call.error(), "take up the network of the sandbox"));
  }
  has_network_ = call && *call && (*call)->Peek(kCreateLinks, deadline).has_value();
  if (!has_network_) {
    context_.Drop(kNetworkName);
  }
  return {};
}

Status Sentry::TakeUpSwitch(std::string_view name, bool stopped, Deadline deadline) {
  auto call = TakeUpCall(context_, std::string(name), deadline);
  if (!call) {
    return std::unexpected(ToError(call.error(), "take up the pause of the sandbox"));
  }
  if (!*call) {
    return {};
  }
  unsaved_.insert(name);
  if ((*call)->Peek(name, deadline)) {
    state_.stopped = stopped;
  }
  return {};
}

Status Sentry::SaveSwitches() {
  if (unsaved_.empty()) {
    return {};
  }
  GANTRY_CHECK_OK(save_(state_));
  // The pause first: one that is left alone would count as the later of the two.
  for (const char* const name : {kPauseName, kResumeName}) {
    if (unsaved_.erase(name) > 0) {
      context_.Drop(name);
    }
  }
  return {};
}

Status Sentry::SaveAndDrop(std::string_view name) {
  GANTRY_CHECK_OK(save_(state_));
  context_.Drop(name);
  return {};
}

bool Sentry::root_started() const {
  const std::lock_guard lock(mutex_);
  return state_.started;
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
  GANTRY_TRY(urpc::Connection call,
             CallDurably(context_, socket(), kNetworkName, request, deadline));
  const auto answer = call.Peek(kCreateLinks, deadline);
  if (!answer) {
    context_.Drop(kNetworkName);
    return std::unexpected(answer.error());
  }
  return {};
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
  GANTRY_TRY(urpc::Connection call, CallDurably(context_, socket(), kRootName, request, deadline));
  const auto answer = call.Peek(request.method, deadline);
  if (!answer) {
    context_.Drop(kRootName);
    return std::unexpected(answer.error());
  }
  return {};
}

Status Sentry::StartRoot(const NetworkSource& take_network, Deadline deadline,
                         std::span<const int> image) {
  const std::lock_guard lock(mutex_);
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
    context_.Drop(kRootName);
    context_.Drop(kNetworkName);
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
    const std::lock_guard lock(mutex_);
    watch = std::move(root_watch_);
  }
  // Its descriptor is open until the watch is gone.
  watch.reset();
  // It is there yet where the start could not be saved.
  context_.Drop(kRootName);
  context_.Drop(kNetworkName);
  {
    const std::lock_guard lock(mutex_);
    root_wait_.reset();
    late_pause_.reset();
    manager_.client().Hangup();
  }
  // Calls that it never answered.
  turns_.Clear();
  {
    const std::lock_guard lock(signal_mutex_);
    late_signal_.reset();
  }
  {
    const std::lock_guard lock(start_mutex_);
    late_start_.reset();
  }
  context_.Drop(kSignalName);
  context_.Drop(kSaveName);
}

Status Sentry::Switch(Turns::Turn* turn, Deadline deadline) {
  const bool stopped = turn != nullptr;
  const std::string_view method = stopped ? kPause : kResume;
  const char* name = stopped ? kPauseName : kResumeName;
  const std::string what = Format("{} the sandbox", name);
  if (stopped) {
    // A resume that is only stored would count as the later of the two.
    GANTRY_CHECK_OK(SaveSwitches());
  }
  auto call = CallDurably(context_, socket(), name, {.method = method}, deadline);
  if (!call) {
    return std::unexpected(ToError(call.error(), what));
  }
  unsaved_.insert(name);
  const auto answer = call->Peek(method, deadline);
  if (answer || urpc::IsLate(answer)) {
    state_.stopped = stopped;
  }
  if (!stopped && answer) {
    // A pause that came to no end goes on until the next one, which has a turn of its own.
    late_pause_.reset();
  } else if (stopped && urpc::IsLate(answer)) {
    late_pause_.emplace(std::move(*turn));
  }
  GANTRY_CHECK_OK(SaveSwitches());
  return answer ? Status() : Status(std::unexpected(ToError(answer.error(), what)));
}

Status Sentry::Pause(const std::string& container, Deadline deadline) {
  GANTRY_TRY(Turns::Turn turn,
             TurnToStandStill(Format("pause container '{}'", container), deadline));
  const std::lock_guard lock(mutex_);
  if (!state_.started) {
    return Fail(Code::kFailedPrecondition, "pause container '{}': its sandbox has not been started",
                container);
  }
  return PauseFor(container, turn, deadline);
}

Status Sentry::PauseFor(const std::string& container, Turns::Turn& turn, Deadline deadline) {
  const bool first = state_.wanted.insert(container).second;
  Status paused = state_.stopped ? (first ? save_(state_) : Status()) : Switch(&turn, deadline);
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
  const std::lock_guard lock(mutex_);
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
  GANTRY_TRY(Turns::Turn turn, TurnToStandStill("pause the sandbox again", deadline));
  bool stood = false;
  Status done;
  {
    const std::lock_guard lock(mutex_);
    stood = state_.stopped;
    if (stood) {
      done = Switch(nullptr, deadline);
    }
  }
  if (done) {
    done = act();
  }
  const std::lock_guard lock(mutex_);
  if (!stood || state_.stopped || state_.wanted.empty()) {
    return done;
  }
  Status stands = Switch(&turn, std::chrono::steady_clock::now() + kResumeLimit);
  return done ? stands : done;
}

Status Sentry::Checkpoint(std::string_view arg, std::span<const int> files,
                          const std::function<Status()>& saved, bool ends, Deadline deadline) {
  const std::string what = Format("checkpoint container '{}'", id_);
  GANTRY_TRY(Turns::Turn turn, TurnToStandStill(what, deadline));
  {
    const std::lock_guard lock(mutex_);
    if (!state_.started) {
      return Fail(Code::kFailedPrecondition, "{}: its sandbox has not been started", what);
    }
    if (state_.wanted.contains(kSaver)) {
      return Fail(Code::kFailedPrecondition, "{}: its sandbox is being saved", what);
    }
    GANTRY_CHECK_OK(PauseFor(kSaver, turn, deadline));
  }
  // Not with the lock held: it takes as long as there is memory, and signals need not wait.
  const auto written = SendCheckpoint(turn, arg, files, deadline);
  Status done = written ? saved() : Status(std::unexpected(ToError(written.error(), what)));
  if (done && ends) {
    return done;
  }
  Status resumed = Resume(kSaver, std::chrono::steady_clock::now() + kResumeLimit);
  return done ? resumed : done;
}

/// The sentry pauses once more by itself: in the same turn.
urpc::Outcome<void> Sentry::SendCheckpoint(Turns::Turn& turn, std::string_view arg,
                                           std::span<const int> files, Deadline deadline) {
  GANTRY_TRY(urpc::Connection call,
             CallDurably(context_, socket(), kSaveName,
                         {.method = kCheckpoint, .arg = arg, .fds = files}, deadline));
  const auto answer = call.Peek(kCheckpoint, deadline);
  if (urpc::IsLate(answer)) {
    LeaveTurn(std::move(turn), std::move(call));
  } else {
    context_.Drop(kSaveName);
  }
  if (!answer) {
    return std::unexpected(answer.error());
  }
  return {};
}

}  // namespace gantry::gvisor
