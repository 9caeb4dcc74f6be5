// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/keeper/note.h"
#include "core/link/paths.h"
#include "core/link/run_dir.h"
#include "core/os/memory.h"

namespace gantry::keeper {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloTimeout = 30s;
constexpr auto kHealthy = 1s;
/// An upgraded engine that lasts so long is not taken back any more.
constexpr auto kProven = 10s;
constexpr std::chrono::milliseconds kFirstBackoff = 50ms;
constexpr std::chrono::milliseconds kMaxBackoff = 5s;
/// After an engine that worked: a caller waits 2 s for the state of a container.
constexpr std::chrono::milliseconds kMaxBackoffAfterHello = 400ms;

int64_t Nanos(async::TimePoint at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

std::vector<std::string> Environment(const std::string& run_dir, bool standby) {
  const std::string kept_back = std::string(link::kStandbyVariable) + "=";
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("GANTRY_RUN_DIR=") && !text.starts_with(kept_back)) {
      all.emplace_back(text);
    }
  }
  all.push_back("GANTRY_RUN_DIR=" + run_dir);
  if (standby) {
    all.push_back(kept_back + "1");
  }
  os::AddMemoryTunables(all);
  return all;
}

/// An end that its own work brought about. SIGKILL is somebody's, or the kernel's for want of
/// memory; the others here are requests to end.
bool IsCrash(int wait_status) {
  // With these it ends in order, having said why: it found no memory or no keeper.
  constexpr int kLastInOrder = 2;
  if (WIFEXITED(wait_status)) {
    return WEXITSTATUS(wait_status) > kLastInOrder;
  }
  const int signal = WTERMSIG(wait_status);
  return signal != SIGKILL && signal != SIGTERM && signal != SIGINT && signal != SIGHUP;
}

}  // namespace

Result<UniqueFd> OpenLog(const std::string& path, int64_t max_bytes) {
  struct stat info{};
  if (stat(path.c_str(), &info) == 0 && info.st_size > max_bytes) {
    rename(path.c_str(), (path + ".1").c_str());
  }
  UniqueFd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) {
    return FailErrno(errno, "open log '{}'", path);
  }
  return log;
}

Supervisor::Supervisor(async::Loop& loop, std::string run_dir, std::string engine,
                       ChildDefaults defaults, Events events)
    : loop_(loop),
      run_dir_(std::move(run_dir)),
      defaults_(defaults),
      events_(std::move(events)),
      heartbeat_(loop, {.ping =
                            [this](uint64_t number) {
                              IgnoreError(current_->channel->Send(link::Ping{number}),
                                          "its end is reported");
                            },
                        .silent = [this](std::chrono::milliseconds time) { OnSilent(time); }}) {
  kept_.path = std::move(engine);
}

Supervisor::~Supervisor() {
  loop_.Cancel(restart_timer_);
  for (const auto* engine : {current_.get(), next_.get()}) {
    if (engine != nullptr) {
      loop_.Cancel(engine->timer);
    }
  }
}

link::Channel* Supervisor::channel() const {
  return current_ && current_->in_charge ? current_->channel.get() : nullptr;
}

link::EngineState Supervisor::state() const {
  if (!current_) {
    return kept_.ever ? link::EngineState::kWaiting : link::EngineState::kNever;
  }
  return current_->in_charge ? link::EngineState::kUp : link::EngineState::kStarting;
}

// --- Starting --------------------------------------------------------------------

Result<std::unique_ptr<Supervisor::Engine>> Supervisor::Start(const std::string& path,
                                                              bool standby) {
  GANTRY_TRY(auto pair, UnixSocketPair());
  GANTRY_TRY(const UniqueFd log, OpenLog(run_dir_ + "/gantry.log", link::kMaxLogBytes));
  os::SpawnRequest request;
  request.executable = path;
  request.argv = {path};
  request.env = Environment(run_dir_, standby);
  request.cwd = "/";
  request.new_session = true;
  request.oom_score_adj = defaults_.oom_score_adj;
  request.limits = {{RLIMIT_NOFILE, defaults_.open_files}};
  request.umask = defaults_.umask;
  request.descriptors = {{log.get(), 1}, {log.get(), 2}, {pair.second.get(), link::kEngineLinkFd}};
  GANTRY_TRY(os::SpawnResult child, os::SpawnProcess(request));
  auto engine = std::make_unique<Engine>();
  engine->path = path;
  engine->process = child.process;
  engine->pidfd = std::move(child.pidfd);
  Connect(*engine, std::move(pair.first));
  ++kept_.starts;
  return engine;
}

void Supervisor::Connect(Engine& engine, UniqueFd link) {
  engine.channel = std::make_unique<link::Channel>(
      loop_, std::move(link),
      [this, raw = &engine](link::Message message) { OnMessage(raw, std::move(message)); },
      [this, raw = &engine](const Error&) { OnLinkClosed(raw); });
}

void Supervisor::Ensure() {
  if (!std::exchange(kept_.ever, true)) {
    StartCurrent();
  }
}

void Supervisor::StartCurrent() {
  auto started = Start(kept_.path, false);
  if (!started) {
    Note("start the engine: {}", started.error().message);
    Restart();
    return;
  }
  current_ = std::move(*started);
  current_->timer = loop_.After(
      kHelloTimeout, [this] { Kill(*current_, SIGKILL, "it did not say Hello in time"); });
}

void Supervisor::Restart() {
  if (shutdown_) {
    return;
  }
  const auto delay = kept_.failures == 0
                         ? 0ms
                         : std::min(kept_.said_hello ? kMaxBackoffAfterHello : kMaxBackoff,
                                    kFirstBackoff * (1 << std::min(kept_.failures - 1, 10)));
  ++kept_.failures;
  restart_timer_ = loop_.After(delay, [this] {
    if (!current_) {
      StartCurrent();
    }
  });
}

// --- The link ----------------------------------------------------------------------

void Supervisor::OnMessage(Engine* engine, link::Message message) {
  if (message.type == link::Type::kHello && !engine->said_hello) {
    OnHello(engine, message);
  } else if (engine == next_.get() && !engine->said_hello) {
    OnStandby(*engine, message);
  } else if (message.type == link::Type::kPong && engine->in_charge) {
    if (const auto pong = message.As<link::Pong>()) {
      heartbeat_.OnPong(pong->number);
      events_.pong();
    }
  } else if (engine->in_charge || engine->retiring) {
    events_.message(std::move(message));
  }
}

void Supervisor::OnStandby(Engine& engine, const link::Message& message) {
  if (message.type == link::Type::kInquire) {
    events_.inquired(*engine.channel);
  } else if (const auto refuse = message.As<link::Refuse>()) {
    engine.refusal = refuse->message;
  }
}

void Supervisor::OnHello(Engine* engine, const link::Message& message) {
  const auto hello = message.As<link::Hello>();
  if (!hello || hello->version != link::kProtocolVersion) {
    Kill(*engine, SIGKILL, "it speaks another version of the link");
    return;
  }
  engine->said_hello = true;
  engine->answers_within = std::chrono::milliseconds(hello->answers_within_ms);
  engine->keep_hanging = hello->keep_hanging;
  engine->tells_recovery = hello->tells_recovery;
  engine->takes_streams = hello->takes_streams;
  loop_.Cancel(engine->timer);
  if (engine == current_.get()) {
    TakeCharge();
    return;
  }
  if (current_) {
    RetireCurrent();
    return;
  }
  loop_.Cancel(restart_timer_);
  CurrentEnded(0);
}

void Supervisor::TakeCharge() {
  ++kept_.generation;
  current_->in_charge = true;
  current_->in_charge_since = loop_.Now();
  if (const int64_t left_at = std::exchange(kept_.left_at_ns, 0); left_at != 0) {
    ++kept_.gaps;
    kept_.gap_ns += Nanos(current_->in_charge_since) - left_at;
  }
  events_.up(*current_->channel);
  heartbeat_.Begin(current_->answers_within);
}

void Supervisor::OnSilent(std::chrono::milliseconds time) {
  ++kept_.hangs;
  const std::string what = Format("it has not answered for {} ms, and hangs", time.count());
  if (current_->keep_hanging) {
    Note("engine {}: {}; it is left as it is", current_->process.pid, what);
  } else {
    current_->hung = true;
    Kill(*current_, SIGKILL, what);
  }
}

void Supervisor::OnLinkClosed(Engine* engine) {
  if (engine == next_.get()) {
    Kill(*engine, SIGKILL, "it closed its link");
    return;
  }
  LeaveCharge(*engine);
  // Nothing can be asked of it any more; its exit brings the next one.
  IgnoreError(SendSignal(engine->pidfd.get(), SIGKILL), "it has ended");
}

void Supervisor::LeaveCharge(Engine& engine) {
  if (std::exchange(engine.in_charge, false)) {
    kept_.left_at_ns = Nanos(loop_.Now());
    heartbeat_.End();
    events_.down();
  }
}

void Supervisor::Kill(Engine& engine, int signal, const std::string& why) {
  Note("end engine {}: {}", engine.process.pid, why);
  IgnoreError(SendSignal(engine.pidfd.get(), signal), "it has ended");
}

// --- Ends ----------------------------------------------------------------------------

void Supervisor::OnExit(const link::Exit& exit) {
  const ProcessId ended{exit.pid, exit.start_time};
  if (next_ && next_->process == ended) {
    next_->channel->Drain();
    NextEnded(next_->refusal.empty() ? "the new engine ended before it was ready"
                                     : "the new engine refuses: " + next_->refusal);
  } else if (current_ && current_->process == ended) {
    CurrentEnded(exit.wait_status);
  }
}

void Supervisor::CurrentEnded(int wait_status) {
  if (current_) {
    Bury(wait_status);
  }
  if (next_ && next_->said_hello) {
    Promote();
  } else {
    Restart();
  }
}

void Supervisor::Bury(int wait_status) {
  // What it said before it died must not be lost.
  current_->channel->Drain();
  LeaveCharge(*current_);
  loop_.Cancel(current_->timer);
  kept_.previous_wait_status = wait_status;
  kept_.said_hello = current_->said_hello;
  if (!current_->retiring) {
    Note("engine {} ended (wait status {:#x})", current_->process.pid, wait_status);
    if (current_->said_hello && (current_->hung || IsCrash(wait_status))) {
      events_.crashed();
    }
  }
  const auto served =
      current_->said_hello ? loop_.Now() - current_->in_charge_since : async::Duration(0);
  if (served >= kHealthy) {
    kept_.failures = 0;
  }
  if (served >= kProven) {
    kept_.fallback_path.clear();
  } else if (!kept_.fallback_path.empty() && !next_) {
    FallBack(wait_status);
  }
  current_.reset();
}

void Supervisor::FallBack(int wait_status) {
  Note(
      "error: engine '{}' ended (wait status {:#x}) within {} s of the upgrade to it: go back to "
      "'{}'; 'gantryctl upgrade --no-fallback' keeps a new one come what may",
      kept_.path, wait_status, kProven.count(), kept_.fallback_path);
  kept_.fell_back_from = kept_.path;
  kept_.fell_back_wait_status = wait_status;
  kept_.path = std::exchange(kept_.fallback_path, {});
}

bool Supervisor::idle() const {
  return !next_ && !shutdown_ &&
         (!current_ || (current_->in_charge && !current_->retiring && current_->channel->idle()));
}

void Supervisor::Shutdown() {
  shutdown_ = true;
  loop_.Cancel(restart_timer_);
  if (current_) {
    RetireCurrent();
  }
  if (next_) {
    Kill(*next_, SIGKILL, "the keeper ends");
  }
}

}  // namespace gantry::keeper
