// SPDX-License-Identifier: Apache-2.0
//
// All that is served, in the order in which it is. docs/metrics.md has the same table, which a test
// compares.
#pragma once

#include <span>

#include "core/metrics/text.h"

namespace gantry::metrics {

inline constexpr Family kBuildInfo{"gantry_build_info", Kind::kGauge, "version",
                                   "Always 1; its label says the version of the engine."};
inline constexpr Family kStartTime{"gantry_engine_start_time_seconds", Kind::kGauge, "",
                                   "When this engine came up, in seconds since 1970."};
inline constexpr Family kEngineCpu{"gantry_engine_cpu_seconds_total", Kind::kCounter, "",
                                   "CPU time of the engine, user and system."};
inline constexpr Family kEngineMemory{"gantry_engine_resident_memory_bytes", Kind::kGauge, "",
                                      "Resident memory of the engine."};
inline constexpr Family kSlowTurns{"gantry_engine_slow_turns_total", Kind::kCounter, "",
                                   "Turns of the engine's loop that took more than 50 ms."};
inline constexpr Family kSandboxes{"gantry_sandboxes", Kind::kGauge, "backend, state",
                                   "Sandboxes that stand, by their state."};
inline constexpr Family kContainers{"gantry_containers", Kind::kGauge, "backend, state",
                                    "Containers, by the state of their first process."};
inline constexpr Family kExecs{"gantry_execs", Kind::kGauge, "backend",
                               "Execs that have not been deleted."};
inline constexpr Family kCallDuration{
    "gantry_call_duration_seconds", Kind::kHistogram, "backend, call, process",
    "Time from a call of containerd to its answer, but for those that wait for an end. "
    "The backend is empty where the call failed before there was one."};
inline constexpr Family kCallFailures{"gantry_call_failures_total", Kind::kCounter,
                                      "backend, call, process",
                                      "Of these calls, those that were answered with an error."};
inline constexpr Family kExits{
    "gantry_exits_total", Kind::kCounter, "backend, process, ending",
    "Processes that have ended: zero, nonzero, signal (a status above 128), oom (killed in a "
    "container that ran out of memory)."};
inline constexpr Family kOutOfMemory{"gantry_oom_events_total", Kind::kCounter, "backend",
                                     "OOM events that containerd was told of."};
inline constexpr Family kRpcs{"gantry_rpc_answers_total", Kind::kCounter, "service, method, code",
                              "Answers by method and code. Service and method are empty for "
                              "requests that named none, or none that there is."};
inline constexpr Family kRpcsRunning{"gantry_rpc_running", Kind::kGauge, "",
                                     "Calls under way, most of them Waits."};
inline constexpr Family kRpcsRefused{"gantry_rpc_refused_total", Kind::kCounter, "",
                                     "Calls that were refused by a limit."};
inline constexpr Family kRpcsLate{"gantry_rpc_late_total", Kind::kCounter, "",
                                  "Calls that were answered before they had ended, since their "
                                  "time was up or a backend hung."};
inline constexpr Family kRpcsUnheard{"gantry_rpc_unheard_total", Kind::kCounter, "",
                                     "Answers that nobody waited for any more."};
inline constexpr Family kWorkers{"gantry_workers", Kind::kGauge, "pool, backend, state",
                                 "Threads for what blocks. Lost ones are in calls that have not "
                                 "returned long after their time."};
inline constexpr Family kWorkerQueue{"gantry_worker_queue_calls", Kind::kGauge, "pool, backend",
                                     "Calls that wait for such a thread."};
inline constexpr Family kWorkerQueueLimit{"gantry_worker_queue_limit_calls", Kind::kGauge, "",
                                          "How many may wait in each pool "
                                          "(limits.max_queued_calls)."};
inline constexpr Family kEventsQueued{"gantry_events_queued", Kind::kGauge, "",
                                      "Events that containerd has not taken."};
inline constexpr Family kEventsQueuedBytes{"gantry_events_queued_bytes", Kind::kGauge, "",
                                           "Their size."};
inline constexpr Family kEventsLimit{"gantry_events_queue_limit", Kind::kGauge, "",
                                     "How many may be queued (events.max_queued)."};
inline constexpr Family kEventsAdded{"gantry_events_added_total", Kind::kCounter, "",
                                     "Events that were queued."};
inline constexpr Family kEventsEnded{
    "gantry_events_ended_total", Kind::kCounter, "outcome",
    "What became of events: published; dropped to make room; refused by a limit; rejected by "
    "containerd."};
inline constexpr Family kSpansQueued{"gantry_spans_queued", Kind::kGauge, "",
                                     "Spans that gantry-grpc has not taken. No row of spans where "
                                     "tracing.endpoint is empty."};
inline constexpr Family kSpansEnded{"gantry_spans_ended_total", Kind::kCounter, "outcome",
                                    "What became of spans: exported; dropped to make room; "
                                    "refused by the collector."};
inline constexpr Family kBackends{"gantry_backend_in_use", Kind::kGauge, "backend, version",
                                  "1 for a backend that is loaded, 0 for one that cannot be."};
inline constexpr Family kBackendFigures{"gantry_backend_figure", Kind::kGauge,
                                        "backend, handler, name",
                                        "What a backend counts of itself, in its own words."};
inline constexpr Family kBackendCounters{"gantry_backend_counted_total", Kind::kCounter,
                                         "backend, name",
                                         "What a backend has counted for its sandboxes, in its "
                                         "own words."};
inline constexpr Family kKeeperUp{"gantry_keeper_up", Kind::kGauge, "",
                                  "1 where the keeper answered; else none of its figures are "
                                  "here."};
inline constexpr Family kKeeperStart{"gantry_keeper_start_time_seconds", Kind::kGauge, "",
                                     "When the keeper was started, in seconds since 1970."};
inline constexpr Family kEngineStarts{"gantry_engine_starts_total", Kind::kCounter, "",
                                      "Engines that were started, upgrades included."};
inline constexpr Family kEngineHangs{"gantry_engine_hangs_total", Kind::kCounter, "",
                                     "Engines whose loop did not turn in time."};
inline constexpr Family kEngineGaps{"gantry_engine_gaps_total", Kind::kCounter, "",
                                    "Times without an engine in charge, between two."};
inline constexpr Family kEngineGapSeconds{"gantry_engine_gap_seconds_total", Kind::kCounter, "",
                                          "Their length in all. containerd's calls waited."};
inline constexpr Family kFellBack{"gantry_engine_fell_back", Kind::kGauge, "",
                                  "1 where the last upgrade of the engine was taken back since "
                                  "the new one crashed."};
inline constexpr Family kKeeperUpgrades{"gantry_keeper_upgrades_total", Kind::kCounter, "",
                                        "Upgrades of the keeper in place."};
inline constexpr Family kInstances{"gantry_keeper_instances", Kind::kGauge, "",
                                   "What containerd has announced and not deleted."};
inline constexpr Family kSockets{"gantry_keeper_sockets", Kind::kGauge, "",
                                 "Sockets that the keeper listens on for containerd."};
inline constexpr Family kConnections{"gantry_keeper_connections", Kind::kGauge, "",
                                     "containerd's connections that it holds."};
inline constexpr Family kRequestsWaiting{"gantry_keeper_requests_waiting", Kind::kGauge, "",
                                         "Requests without an answer."};
inline constexpr Family kRequestBytes{"gantry_keeper_request_bytes", Kind::kGauge, "",
                                      "What it keeps of them."};
inline constexpr Family kRequests{"gantry_keeper_requests_total", Kind::kCounter, "",
                                  "Requests that it has taken."};
inline constexpr Family kRequestsRefused{"gantry_keeper_requests_refused_total", Kind::kCounter, "",
                                         "Requests that it has refused by a limit."};
inline constexpr Family kRequestsReplayed{"gantry_keeper_requests_replayed_total", Kind::kCounter,
                                          "", "Requests that it gave to a later engine again."};
inline constexpr Family kRequestsDropped{"gantry_keeper_requests_dropped_total", Kind::kCounter, "",
                                         "Requests that it answered itself, since engines crashed "
                                         "of them."};
inline constexpr Family kProcesses{"gantry_keeper_processes", Kind::kGauge, "",
                                   "Processes whose end it watches for."};
inline constexpr Family kExitsKept{"gantry_keeper_exits_kept", Kind::kGauge, "",
                                   "Ends of processes that no engine has acknowledged."};
inline constexpr Family kDescriptors{"gantry_keeper_descriptors", Kind::kGauge, "",
                                     "Descriptors that it keeps for engines."};
inline constexpr Family kSandboxCpu{"gantry_sandbox_cpu_seconds_total", Kind::kCounter,
                                    "namespace, id, backend", "CPU time of the sandbox's cgroup."};
inline constexpr Family kSandboxMemory{"gantry_sandbox_memory_bytes", Kind::kGauge,
                                       "namespace, id, backend",
                                       "Memory that the sandbox's cgroup accounts for."};
inline constexpr Family kSandboxEngineCpu{"gantry_sandbox_engine_cpu_seconds_total", Kind::kCounter,
                                          "namespace, id, backend",
                                          "CPU time of the engine on its behalf."};
inline constexpr Family kSandboxCalls{"gantry_sandbox_calls", Kind::kGauge,
                                      "namespace, id, backend", "Its calls without an answer."};
inline constexpr Family kSandboxBytes{"gantry_sandbox_held_bytes", Kind::kGauge,
                                      "namespace, id, backend",
                                      "What the engine holds in memory for its calls and execs."};

/// All of them, in the order of the text.
std::span<const Family* const> AllFamilies();

}  // namespace gantry::metrics
