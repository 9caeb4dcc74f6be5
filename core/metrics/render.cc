// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/render.h"

#include <chrono>
#include <string_view>

#include "core/metrics/families.h"

namespace gantry::metrics {
namespace {

template <class T>
void One(TextWriter& out, const Family& family, T value) {
  out.Begin(family);
  out.Add({}, value);
}

void Add(TextWriter& out, const Family& family, const ByState& counts) {
  out.Begin(family);
  for (const auto& [key, count] : counts) {
    out.Add({{"backend", key.first}, {"state", key.second}}, count);
  }
}

void Add(TextWriter& out, const Family& family, const std::map<std::string, uint64_t>& counts) {
  out.Begin(family);
  for (const auto& [backend, count] : counts) {
    out.Add({{"backend", backend}}, count);
  }
}

void AddEngine(TextWriter& out, const Moment& moment) {
  out.Begin(kBuildInfo);
  out.Add({{"version", moment.version}}, uint64_t{1});
  One(out, kStartTime, moment.started_at);
  One(out, kEngineCpu, moment.engine.cpu_seconds);
  One(out, kEngineMemory, moment.engine.resident_bytes);
  One(out, kSlowTurns, moment.figures.slow_turns);
}

std::string_view EndingName(Ending ending) {
  switch (ending) {
    case Ending::kZero:
      return "zero";
    case Ending::kNonZero:
      return "nonzero";
    case Ending::kSignal:
      return "signal";
    case Ending::kOutOfMemory:
      return "oom";
  }
  return "";
}

void AddLives(TextWriter& out, const Moment& moment) {
  Add(out, kSandboxes, moment.sandboxes);
  Add(out, kContainers, moment.containers);
  Add(out, kExecs, moment.execs);
  out.Begin(kCallDuration);
  for (const auto& [key, call] : moment.figures.calls) {
    out.Add({{"backend", key.backend}, {"call", key.call}, {"process", key.process}}, call.took);
  }
  out.Begin(kCallFailures);
  for (const auto& [key, call] : moment.figures.calls) {
    out.Add({{"backend", key.backend}, {"call", key.call}, {"process", key.process}},
            call.failures);
  }
  out.Begin(kExits);
  for (const auto& [key, count] : moment.figures.exits) {
    out.Add({{"backend", key.backend},
             {"process", key.exec ? "exec" : "init"},
             {"ending", EndingName(key.ending)}},
            count);
  }
  Add(out, kOutOfMemory, moment.figures.out_of_memory);
}

void AddCalls(TextWriter& out, const Calls& calls) {
  out.Begin(kRpcs);
  for (const Answers& one : calls.answers) {
    out.Add({{"service", one.service}, {"method", one.method}, {"code", one.code}}, one.count);
  }
  One(out, kRpcsRunning, calls.running);
  One(out, kRpcsRefused, calls.refused);
  One(out, kRpcsLate, calls.late);
  One(out, kRpcsUnheard, calls.unheard);
}

void AddQueues(TextWriter& out, const Moment& moment) {
  out.Begin(kWorkers);
  for (const Workers& one : moment.workers) {
    out.Add({{"pool", one.pool}, {"backend", one.backend}, {"state", "idle"}}, one.idle);
    out.Add({{"pool", one.pool}, {"backend", one.backend}, {"state", "busy"}}, one.busy);
    out.Add({{"pool", one.pool}, {"backend", one.backend}, {"state", "lost"}}, one.lost);
  }
  out.Begin(kWorkerQueue);
  for (const Workers& one : moment.workers) {
    out.Add({{"pool", one.pool}, {"backend", one.backend}}, one.queued);
  }
  One(out, kWorkerQueueLimit, moment.worker_queue_limit);
  const Events& events = moment.events;
  One(out, kEventsQueued, events.queued);
  One(out, kEventsQueuedBytes, events.queued_bytes);
  One(out, kEventsLimit, events.limit);
  One(out, kEventsAdded, events.added);
  out.Begin(kEventsEnded);
  out.Add({{"outcome", "published"}}, events.published);
  out.Add({{"outcome", "dropped"}}, events.dropped);
  out.Add({{"outcome", "refused"}}, events.refused);
  out.Add({{"outcome", "rejected"}}, events.rejected);
}

void AddSpans(TextWriter& out, const Moment& moment) {
  if (moment.spans) {
    One(out, kSpansQueued, moment.spans->queued);
    out.Begin(kSpansEnded);
    out.Add({{"outcome", "exported"}}, moment.spans->exported);
    out.Add({{"outcome", "dropped"}}, moment.spans->dropped);
    out.Add({{"outcome", "refused"}}, moment.spans->refused);
  }
}

void AddBackends(TextWriter& out, const Moment& moment) {
  out.Begin(kBackends);
  for (const Backend& one : moment.backends) {
    out.Add({{"backend", one.name}, {"version", one.version}}, uint64_t{one.in_use ? 1U : 0U});
  }
  out.Begin(kBackendFigures);
  for (const BackendFigure& one : moment.backend_figures) {
    out.AddNew({{"backend", one.backend}, {"handler", one.handler}, {"name", one.name}}, one.value);
  }
  out.Begin(kBackendCounters);
  for (const BackendFigure& one : moment.backend_counters) {
    out.AddNew({{"backend", one.backend}, {"name", one.name}}, one.value);
  }
}

void AddKeeper(TextWriter& out, const Keeper& keeper) {
  One(out, kKeeperStart, keeper.started_at);
  One(out, kEngineStarts, keeper.engine_starts);
  One(out, kEngineHangs, keeper.engine_hangs);
  One(out, kEngineGaps, keeper.engine_gaps);
  One(out, kEngineGapSeconds, keeper.gap_seconds);
  One(out, kFellBack, uint64_t{keeper.fell_back ? 1U : 0U});
  One(out, kKeeperUpgrades, keeper.upgrades);
  One(out, kInstances, keeper.instances);
  One(out, kSockets, keeper.sockets);
  One(out, kConnections, keeper.connections);
  One(out, kRequestsWaiting, keeper.requests_waiting);
  One(out, kRequestBytes, keeper.request_bytes);
  One(out, kRequests, keeper.requests);
  One(out, kRequestsRefused, keeper.requests_refused);
  One(out, kRequestsReplayed, keeper.requests_replayed);
  One(out, kRequestsDropped, keeper.requests_dropped);
  One(out, kProcesses, keeper.processes);
  One(out, kExitsKept, keeper.exits);
  One(out, kDescriptors, keeper.descriptors);
}

/// `value`: what of a row; nothing: that is not known.
void AddRows(TextWriter& out, const Family& family, const std::vector<SandboxRow>& rows,
             auto&& value) {
  out.Begin(family);
  for (const SandboxRow& row : rows) {
    if (const auto known = value(row)) {
      out.Add({{"namespace", row.ns}, {"id", row.id}, {"backend", row.backend}}, *known);
    }
  }
}

void AddSandboxes(TextWriter& out, const std::vector<SandboxRow>& rows) {
  using Count = std::optional<uint64_t>;
  using Seconds = std::optional<double>;
  constexpr double kMicro = 1e6;
  constexpr double kNano = 1e9;
  AddRows(out, kSandboxCpu, rows, [](const SandboxRow& row) {
    return row.cpu_us ? Seconds(static_cast<double>(*row.cpu_us) / kMicro) : Seconds();
  });
  AddRows(out, kSandboxMemory, rows, [](const SandboxRow& row) { return row.memory_bytes; });
  AddRows(out, kSandboxEngineCpu, rows, [](const SandboxRow& row) {
    return Seconds(static_cast<double>(row.engine_cpu_ns) / kNano);
  });
  AddRows(out, kSandboxCalls, rows, [](const SandboxRow& row) { return Count(row.calls); });
  AddRows(out, kSandboxBytes, rows,
          [](const SandboxRow& row) { return Count(row.buffered_bytes); });
}

}  // namespace

std::string Render(const Moment& moment, TextFormat format) {
  TextWriter out(format);
  AddEngine(out, moment);
  AddLives(out, moment);
  AddCalls(out, moment.calls);
  AddQueues(out, moment);
  AddSpans(out, moment);
  AddBackends(out, moment);
  One(out, kKeeperUp, uint64_t{moment.keeper ? 1U : 0U});
  if (moment.keeper) {
    AddKeeper(out, *moment.keeper);
  }
  if (moment.sandbox_rows) {
    AddSandboxes(out, *moment.sandbox_rows);
  }
  return out.Finish();
}

}  // namespace gantry::metrics
