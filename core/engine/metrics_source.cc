// SPDX-License-Identifier: Apache-2.0
#include "core/engine/metrics_source.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <gantry/toolkit/files/files.h>

#include "core/engine/ask_keeper.h"
#include "core/engine/sandbox_usage.h"
#include "core/engine/tasks.h"

namespace gantry::engine {
namespace {

using metrics::Moment;

/// Waited for on the loop, while the scraper waits.
constexpr std::chrono::milliseconds kCountsWait(200);
/// Of each scrape, for all sandboxes.
constexpr std::chrono::milliseconds kUsageLimit(10);
/// Backends choose their words: so many rows of one are served.
constexpr size_t kMostCounts = 256;
constexpr double kMicro = 1e6;
constexpr double kNano = 1e9;

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicro;
}

metrics::Process OwnProcess() {
  metrics::Process process;
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) == 0) {
    process.cpu_seconds = SecondsOf(used.ru_utime) + SecondsOf(used.ru_stime);
  }
  // "SIZE RESIDENT ...", in pages. Source: proc(5).
  const auto text = ReadFile("/proc/self/statm", 256);
  const size_t space = text ? text->find(' ') : std::string::npos;
  if (space != std::string::npos) {
    uint64_t pages = 0;
    std::from_chars(text->data() + space + 1, text->data() + text->size(), pages);
    process.resident_bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  return process;
}

std::optional<metrics::Keeper> KeeperFigures(const std::string& run_dir) {
  const Result<link::KeeperStatus> asked = AskKeeper(run_dir);
  if (!asked) {
    return std::nullopt;
  }
  const link::KeeperStatus& told = *asked;
  metrics::Keeper keeper;
  keeper.started_at = static_cast<double>(told.started_at_ns) / kNano;
  keeper.engine_starts = told.engine_starts;
  keeper.engine_hangs = told.engine_hangs;
  keeper.engine_gaps = told.engine_gaps;
  keeper.gap_seconds = static_cast<double>(told.engine_gap_ns) / kNano;
  keeper.fell_back = !told.fell_back_from.empty();
  keeper.upgrades = told.keeper_upgrades;
  keeper.instances = told.instance_count;
  keeper.sockets = told.sockets;
  keeper.connections = told.connections;
  keeper.requests_waiting = told.requests_waiting;
  keeper.request_bytes = told.request_bytes;
  keeper.requests = told.requests_total;
  keeper.requests_refused = told.requests_refused;
  keeper.requests_replayed = told.requests_replayed;
  keeper.requests_dropped = told.requests_dropped;
  keeper.processes = told.processes_watched;
  keeper.exits = told.exits_kept;
  keeper.descriptors = told.descriptors_stored;
  return keeper;
}

metrics::SandboxRow RowOf(const task::Group& group, const std::string& backend) {
  metrics::SandboxRow row{.ns = group.ns.str(), .id = group.id, .backend = backend};
  row.engine_cpu_ns = group.account->cpu_ns.load(std::memory_order_relaxed);
  row.calls = group.account->calls;
  row.buffered_bytes = group.account->bytes;
  return row;
}

/// Pods by their own cgroup; others are the sum of their containers.
std::vector<UsedBy> RowsOf(const Tasks& tasks) {
  std::map<std::string, UsedBy> rows;
  std::set<std::string> pods;
  for (const task::PodPtr& pod : tasks.Pods()) {
    pods.insert(pod->group->address);
    rows[pod->group->address] = {RowOf(*pod->group, pod->backend_name), {pod->cgroups.pod}};
  }
  for (const task::ContainerPtr& container : tasks.containers().All()) {
    const std::string& address = container->group->address;
    if (pods.contains(address)) {
      continue;
    }
    const auto [row, entered] = rows.try_emplace(address);
    if (entered) {
      row->second.row = RowOf(*container->group, container->backend_name);
    }
    row->second.cgroups.push_back(container->cgroup);
  }
  std::vector<UsedBy> all;
  all.reserve(rows.size());
  for (auto& [address, one] : rows) {
    all.push_back(std::move(one));
  }
  return all;
}

metrics::Workers WorkersOf(std::string pool, std::string backend,
                           const async::WorkerPool::Counts& counts) {
  return {.pool = std::move(pool),
          .backend = std::move(backend),
          .idle = counts.idle,
          // A lost worker works on a call, too.
          .busy = counts.running - std::min(counts.running, counts.lost),
          .lost = counts.lost,
          .queued = counts.queued};
}

}  // namespace

MetricsSource::MetricsSource(const MetricsFrom& from)
    : from_(from),
      started_at_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                      .count()) {}

metrics::Pages::Look MetricsSource::Look() {
  auto usage = std::make_shared<SandboxUsage>(kUsageLimit);
  return [this, usage](metrics::Pages::Done done) {
    // Both run on the metrics' thread; between them the loop's has its turn.
    from_.loop.Post([this, usage, done = std::move(done)]() mutable {
      async::Start(Take(usage, std::move(done)));
    });
  };
}

async::Task<void> MetricsSource::Take(std::shared_ptr<SandboxUsage> usage,
                                      metrics::Pages::Done done) {
  if (!counting_) {
    counting_ = true;
    counted_ = {};
    async::Start(ReadCounts(counted_));
  }
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): another look may come.
  const async::OneShot<void> counted = counted_;
  co_await counted.WaitFor(from_.loop, kCountsWait);
  std::vector<UsedBy> rows;
  if (from_.config.metrics.sandboxes) {
    rows = RowsOf(from_.tasks);
  }
  done([this, usage = std::move(usage), moment = Now(), rows = std::move(rows)]() mutable {
    moment.engine = OwnProcess();
    moment.keeper = KeeperFigures(from_.run_dir);
    if (from_.config.metrics.sandboxes) {
      moment.sandbox_rows = usage->Read(std::move(rows));
    }
    return std::move(moment);
  });
}

async::Task<void> MetricsSource::ReadCounts(async::OneShot<void> done) {
  auto read =
      co_await from_.pool.Run([this]() -> Result<Counts> { return from_.backends.Counts(); });
  if (read) {
    counts_ = std::move(*read);
  }
  counting_ = false;
  done.Set();
}

Moment MetricsSource::Now() const {
  Moment moment;
  moment.version = GANTRY_VERSION;
  moment.started_at = started_at_;
  moment.figures = from_.tasks.figures();
  moment.figures.slow_turns = from_.slow_turns;
  AddLives(moment);
  AddCalls(moment);
  AddQueues(moment);
  AddBackends(moment);
  return moment;
}

void MetricsSource::AddLives(Moment& moment) const {
  std::set<const task::SandboxEntry*> seen;
  for (const task::PodPtr& pod : from_.tasks.Pods()) {
    seen.insert(pod->entry.get());
    ++moment.sandboxes[{pod->backend_name, std::string(store::StateName(pod->life.state()))}];
  }
  for (const task::ContainerPtr& container : from_.tasks.containers().All()) {
    const std::string& backend = container->backend_name;
    if (container->sandbox && seen.insert(container->sandbox.get()).second) {
      ++moment.sandboxes[{backend, "running"}];
    }
    const task::TaskProcessPtr& init = container->init;
    ++moment.containers[{backend, std::string(store::StateName(init ? init->life.state()
                                                                    : store::State::kCreating))}];
    moment.execs[backend] += container->execs.size();
  }
}

void MetricsSource::AddCalls(Moment& moment) const {
  const rpc::DispatcherCounters counters = from_.dispatcher.counters();
  moment.calls.running = counters.running;
  moment.calls.refused = counters.refused;
  moment.calls.late = counters.timeouts;
  moment.calls.unheard = counters.dropped;
  for (rpc::AnswerCount& one : from_.dispatcher.Answers()) {
    moment.calls.answers.push_back({std::move(one.service), std::move(one.method),
                                    std::string(CodeName(one.code)), one.count});
  }
}

void MetricsSource::AddQueues(Moment& moment) const {
  const task::BackendCalls& calls = from_.tasks.backend_calls();
  moment.workers.push_back(WorkersOf("engine", "", from_.pool.counts()));
  moment.workers.push_back(WorkersOf("streams", "", calls.StreamCounts()));
  for (const auto& [backend, counts] : calls.PoolsOfBackends()) {
    moment.workers.push_back(WorkersOf("backend", backend, counts));
  }
  moment.worker_queue_limit = from_.config.limits.max_queued_calls;
  const events::OutboxCounters counters = from_.publishers.outbox().counters();
  moment.events = {.added = counters.added,
                   .published = counters.published,
                   .dropped = counters.dropped,
                   .refused = counters.refused,
                   .rejected = counters.rejected,
                   .queued = counters.queued,
                   .queued_bytes = counters.queued_bytes,
                   .limit = from_.config.events.max_queued};
  if (from_.spans != nullptr) {
    const trace::SpanCounters& spans = from_.spans->counters();
    moment.spans = metrics::Spans{.queued = from_.spans->waiting(),
                                  .dropped = spans.dropped,
                                  .exported = spans.exported,
                                  .refused = spans.refused};
  }
}

void MetricsSource::AddBackends(Moment& moment) const {
  for (const backend::BackendState& state : from_.backends.States()) {
    moment.backends.push_back({state.name, state.version, state.error.empty()});
  }
  for (const auto& [backend, counts] : counts_) {
    for (size_t i = 0; i < std::min(counts.size(), kMostCounts); ++i) {
      moment.backend_figures.push_back(
          {backend, counts[i].handler, counts[i].name, counts[i].value});
    }
  }
  std::map<std::string, size_t> rows;
  for (const auto& [name, value] : from_.counters.All()) {
    const size_t dot = name.find('.');
    const std::string backend = name.substr(0, dot);
    if (dot != std::string::npos && ++rows[backend] <= kMostCounts) {
      moment.backend_counters.push_back({backend, "", name.substr(dot + 1), value});
    }
  }
}

}  // namespace gantry::engine
