// SPDX-License-Identifier: Apache-2.0
//
// How an engine begins and ends. It says hello to the keeper and takes the snapshot as it comes.
// Then it clears what mounts an earlier engine left, opens the queue of events, registers the
// services, and only then lets through what had to wait (`WhenUp`), in the order in which the
// keeper sent it: instances before the requests that are for them. Publishing starts last, so
// that no event of a recovered container is told before its record has been read. Told to end,
// it stops as soon as no call is under way, or after a moment: the keeper replays the rest.
#include "core/engine/engine.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include <gantry/backend.h>
#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/mount/unmount.h>

#include "core/backend/retired.h"
#include "core/config/config.h"
#include "core/engine/ask_keeper.h"
#include "core/engine/event_feed.h"
#include "core/engine/grpc_program.h"
#include "core/engine/metrics_source.h"
#include "core/engine/operator_service.h"
#include "core/engine/span_feed.h"
#include "core/engine/takeover.h"
#include "core/engine/tasks.h"
#include "core/events/publisher.h"
#include "core/link/channel.h"
#include "core/link/messages.h"
#include "core/link/own_names.h"
#include "core/log/log.h"
#include "core/metrics/server.h"
#include "core/os/fs.h"
#include "core/os/process.h"
#include "core/task/pool_limits.h"
#include "core/trace/recorder.h"
#include "core/trace/spans.h"

namespace gantry::engine {
namespace {

/// A turn of the loop that takes longer holds up everybody; it is logged.
constexpr auto kSlowTurn = std::chrono::milliseconds(50);
/// What an engine that is to end gives the calls under way. Others wait meanwhile.
constexpr auto kLastCalls = std::chrono::milliseconds(20);
constexpr auto kRetirePace = std::chrono::milliseconds(1);

std::string OwnProgram() {
  Result<std::string> self = ReadLink("/proc/self/exe");
  return self ? std::move(*self) : std::string();
}

async::PoolLimits WorkerLimits(const config::Limits& configured) {
  async::PoolLimits limits = task::PoolLimitsOf(configured);
  limits.on_lost = [](const std::string& what) { LogError("a worker is lost in {}", what); };
  return limits;
}

std::unique_ptr<trace::Spans> SpansFor(const config::Tracing& tracing) {
  return tracing.endpoint.empty()
             ? nullptr
             : std::make_unique<trace::Spans>(trace::SpanOptions{.sample = tracing.sample});
}

}  // namespace

Engine::Engine(CommandLine line, config::Config config, std::string config_error,
               cgroup::CgroupHierarchy cgroups, UniqueFd link)
    : line_(std::move(line)),
      config_(std::move(config)),
      config_error_(std::move(config_error)),
      cgroups_(std::move(cgroups)),
      early_link_(line_.standby ? link.Duplicate().value_or(UniqueFd()) : UniqueFd()),
      pool_(loop_, WorkerLimits(config_.limits)),
      link_(loop_, std::move(link), *this),
      processes_(loop_, link_),
      spans_(SpansFor(config_.tracing)),
      backends_(config_, line_.libexec, line_.run_dir, OwnProgram()) {}

Engine::~Engine() = default;

int Engine::Run() {
  loop_.SetSlowTurnObserver(kSlowTurn, [this](async::Duration took) {
    ++slow_turns_;
    LogWarning("a turn of the loop took {} ms",
               std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
  });
  WatchSignals();
  if (Status can = CheckStandby(); !can) {
    LogError("take the other engine's place: {}", can.error().message);
    return 1;
  }
  if (Status hello = link_.SayHello(config_.hang.after, !config_.hang.restart); !hello) {
    LogError("say hello to the keeper: {}", hello.error().message);
    return 1;
  }
  loop_.Run();
  backends_.Leave();
  return exit_code_;
}

void Engine::WatchSignals() {
  Result<UniqueFd> signals = os::OpenSignalFd({SIGTERM, SIGINT, SIGHUP});
  if (!signals) {
    LogWarning("watch signals: {}", signals.error().message);
    return;
  }
  signals_ = std::move(*signals);
  signal_watch_ = loop_.Watch(signals_.get(), EPOLLIN, [this](uint32_t) {
    loop_.Rearm(signal_watch_, 0);
    recorder_.Note(trace::Kind::kEngine, {}, "told to end");
    Retire(loop_.Now() + kLastCalls);
  });
}

void Engine::Retire(async::TimePoint until) {
  const bool busy = (dispatcher_ && dispatcher_->IsBusy()) || !link_.flushed();
  if (!busy || loop_.Now() >= until) {
    loop_.Stop();
  } else {
    loop_.After(kRetirePace, [this, until] { Retire(until); });
  }
}

Status Engine::CheckStandby() {
  if (!line_.standby) {
    return {};
  }
  link::BlockingChannel keeper(std::move(early_link_));
  Status can = config_error_.empty() ? CheckTakeover(keeper, backends_)
                                     : Fail(Code::kFailedPrecondition, "{}", config_error_);
  if (!can) {
    IgnoreError(keeper.Send(link::Type::kRefuse, EncodeProto(link::Refuse{can.error().message}),
                            std::chrono::steady_clock::now() + std::chrono::seconds(1)),
                "it ends, which says enough");
  }
  return can;
}

void Engine::GiveBack() {
  if (backend::ForgetRetired(backend::kRetiredFor) > 0) {
    loop_.After(backend::kRetiredFor, [this] { trim_.Touch(); });
  }
  os::ReleaseMemory();
}

void Engine::WhenUp(std::move_only_function<void()> function) {
  if (up_) {
    function();
  } else {
    waiting_.push_back(std::move(function));
  }
}

async::Task<Result<UniqueFd>> Engine::TakeMemfd(std::string name) {
  if (Result<UniqueFd> kept = co_await link_.Take(name)) {
    co_return std::move(*kept);
  }
  GANTRY_CO_TRY(UniqueFd memfd, CreateMemfd("gantry-" + name));
  GANTRY_CO_TRY(UniqueFd copy, memfd.Duplicate());
  GANTRY_CO_CHECK_OK(co_await link_.Put(std::move(name), std::move(copy)));
  co_return memfd;
}

async::Task<Result<std::unique_ptr<EventFeed>>> Engine::OpenFeed() {
  GANTRY_CO_TRY(UniqueFd memfd, co_await TakeMemfd(link::kRecentEventsMemfd));
  co_return EventFeed::Open(loop_, std::move(memfd));
}

async::Task<Result<std::unique_ptr<events::Outbox>>> Engine::OpenOutbox() {
  GANTRY_CO_TRY(UniqueFd memfd, co_await TakeMemfd(link::kOutboxMemfd));
  events::OutboxLimits limits;
  limits.per_container = config_.events.max_queued_per_container;
  limits.bytes_per_container = config_.events.max_bytes_per_container;
  limits.total = config_.events.max_queued;
  co_return events::Outbox::Open(std::move(memfd), limits, &recorder_);
}

Result<task::BackendRef> Engine::FindBackend(std::string name) {
  GANTRY_TRY(SandboxBackend* const backend, backends_.Find(name));
  return task::BackendRef{std::move(name), backend};
}

std::string Engine::MountScratch() const { return line_.run_dir + "/layers"; }

std::unique_ptr<rpc::Dispatcher> Engine::MakeDispatcher() {
  rpc::DispatcherLimits limits;
  limits.per_connection = config_.limits.max_waits_per_connection;
  limits.per_account = config_.limits.max_calls_per_sandbox;
  limits.bytes_per_account = config_.limits.max_bytes_per_sandbox;
  return std::make_unique<rpc::Dispatcher>(
      loop_, table_,
      [this](uint64_t connection, uint32_t stream, std::string response) {
        link_.Respond(connection, stream, std::move(response));
      },
      limits);
}

/// The engine before this one, which wrote there, has ended.
trace::OpenStep Engine::BeginRecording() {
  if (const Status opened = recorder_.Open(line_.run_dir); !opened) {
    LogWarning("{}: gantryctl trace will show nothing", opened.error().message);
  }
  recorder_.Export(spans_.get());
  return recorder_.Begin(trace::Kind::kEngine, {}, trace::kComeUp);
}

Status Engine::Register() {
  GANTRY_CHECK_OK(tasks_->Register(table_));
  GANTRY_CHECK_OK(RegisterOperator(
      table_, {{loop_, pool_}, *tasks_, backends_, *publishers_, counters_, *feed_}));
  if (!spans_) {
    return {};
  }
  span_feed_ = std::make_unique<SpanFeed>(loop_, *spans_);
  return span_feed_->Register(table_);
}

async::Task<void> Engine::ClearMounts() {
  const std::string scratch = MountScratch();
  const Status cleared =
      co_await pool_.Run([&scratch]() -> Status { return mount::ClearMountScratch(scratch); });
  if (!cleared) {
    LogWarning("{}", cleared.error().message);
  }
}

async::Task<Status> Engine::OpenEvents() {
  GANTRY_CO_TRY(std::unique_ptr<events::Outbox> outbox, co_await OpenOutbox());
  GANTRY_CO_TRY(feed_, co_await OpenFeed());
  events::PublisherOptions options;
  options.timeout = config_.events.forward_timeout;
  options.backoff_min = config_.events.retry_min;
  options.backoff_max = config_.events.retry_max;
  publishers_ = std::make_unique<events::Publishers>(loop_, std::move(outbox), options);
  feed_->LookFirst([this] { return TellKeeper(false); });
  publishers_->Observe([this](const events::Event& event) {
    feed_->OnTask(event, tasks_->SandboxOf(event.subject));
  });
  co_return Status();
}

void Engine::MakeTasks() {
  const task::Parts parts{{loop_, pool_, link_, processes_, cgroups_},
                          config_,
                          relay_,
                          *publishers_,
                          counters_,
                          recorder_,
                          [this](std::string_view name) { return FindBackend(std::string(name)); },
                          config_error_,
                          task::kOverdueAfter,
                          MountScratch()};
  tasks_ = std::make_unique<Tasks>(parts);
  tasks_->Observe([this](const events::SandboxEvent& event) { feed_->OnSandbox(event); });
}

void Engine::RegisterServices() {
  if (const Status registered = Register(); !registered) {
    LogError("register the services: {}", registered.error().message);
  }
}

void Engine::LetThrough() {
  up_ = true;
  while (!waiting_.empty()) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }
}

void Engine::StartGrpc() {
  grpc_ = std::make_unique<GrpcProgram>(loop_, pool_, processes_, config_, line_.run_dir,
                                        line_.libexec + "/gantry-grpc");
  grpc_->Begin();
}

async::Task<void> Engine::ComeUp() {
  const trace::OpenStep step = BeginRecording();
  co_await ClearMounts();
  if (const Status opened = co_await OpenEvents(); !opened) {
    LogError("come up: {}", opened.error().message);
    step.Ended(opened.error());
    exit_code_ = 1;
    loop_.Stop();
    co_return;
  }
  MakeTasks();
  RegisterServices();
  dispatcher_ = MakeDispatcher();
  LetThrough();
  publishers_->Start();
  StartGrpc();
  ServeMetrics();
  trim_.Touch();
  step.Ended(Code::kOk, Format("version {}, pid {}, {} instances", GANTRY_VERSION, getpid(),
                               tasks_->instances().size()));
  LogInfo("up, {} instances", tasks_->instances().size());
  async::Start(TellKeeper(true));
}

async::Task<void> Engine::TellKeeper(bool up) {
  const Result<link::KeeperStatus> keeper =
      co_await pool_.Run([this] { return AskKeeper(line_.run_dir); });
  if (up) {
    feed_->OnUp({.version = GANTRY_VERSION,
                 .pid = static_cast<uint32_t>(getpid()),
                 .took_over = line_.standby},
                keeper ? &*keeper : nullptr);
  } else if (keeper) {
    feed_->OnKeeper(*keeper);
  }
}

void Engine::ServeMetrics() {
  if (config_.metrics.address.empty()) {
    return;
  }
  metrics_source_ = std::make_unique<MetricsSource>(
      MetricsFrom{loop_, pool_, config_, line_.run_dir, *tasks_, backends_, counters_, *publishers_,
                  *dispatcher_, slow_turns_, spans_.get()});
  metrics_ = std::make_unique<metrics::Server>(
      metrics::Listener::Options{.address = config_.metrics.address}, metrics_source_->Look());
}

void Engine::OnInstanceAdded(link::InstanceAdded instance) {
  trim_.Touch();
  WhenUp([this, instance = std::move(instance)]() mutable {
    tasks_->InstanceAdded(std::move(instance));
  });
}

void Engine::OnInstanceRemoved(link::InstanceRemoved removed) {
  trim_.Touch();
  WhenUp([this, removed] { tasks_->InstanceRemoved(removed); });
}

void Engine::OnExit(const link::Exit& exit) {
  trim_.Touch();
  processes_.OnExit(exit);
}

void Engine::OnNamedSpawn(const link::NamedSpawn& spawn) { processes_.OnNamedSpawn(spawn); }

void Engine::OnEndedNames(const link::EndedNames& ended) { processes_.OnEndedNames(ended); }

void Engine::OnWatched(const link::Watched& watched) { processes_.OnWatched(watched); }

void Engine::OnStoredNames(std::vector<std::string> names) {
  stored_.insert(stored_.end(), std::make_move_iterator(names.begin()),
                 std::make_move_iterator(names.end()));
}

void Engine::OnSnapshotEnd() {
  processes_.OnSnapshotEnd();
  WhenUp([this] { tasks_->SnapshotEnd(std::move(stored_)); });
  async::Start(ComeUp());
}

void Engine::OnRequest(link::Request request) {
  trim_.Touch();
  WhenUp([this, request = std::move(request)]() mutable {
    rpc::IncomingRequest incoming;
    incoming.connection = request.connection;
    incoming.stream = request.stream;
    incoming.bytes = std::move(request.payload);
    incoming.ns = std::move(request.ns);
    incoming.account = tasks_->AccountAt(request.address);
    incoming.address = std::move(request.address);
    incoming.replay = request.replay;
    dispatcher_->Dispatch(std::move(incoming));
  });
}

void Engine::OnConnectionClosed(uint64_t connection) {
  WhenUp([this, connection] { dispatcher_->ConnectionClosed(connection); });
}

void Engine::OnDeleteCall(const link::DeleteCall& call) {
  trim_.Touch();
  WhenUp([this, call] { tasks_->DeleteCall(call); });
}

void Engine::OnKeeperLost(Error error) {
  LogError("the keeper is gone: {}", error.message);
  exit_code_ = 1;
  loop_.Stop();
}

}  // namespace gantry::engine
