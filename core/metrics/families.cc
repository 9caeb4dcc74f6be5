// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/families.h"

namespace gantry::metrics {
namespace {

constexpr const Family* kAll[] = {&kBuildInfo,
                                  &kStartTime,
                                  &kEngineCpu,
                                  &kEngineMemory,
                                  &kSlowTurns,
                                  &kSandboxes,
                                  &kContainers,
                                  &kExecs,
                                  &kCallDuration,
                                  &kCallFailures,
                                  &kExits,
                                  &kOutOfMemory,
                                  &kRpcs,
                                  &kRpcsRunning,
                                  &kRpcsRefused,
                                  &kRpcsLate,
                                  &kRpcsUnheard,
                                  &kWorkers,
                                  &kWorkerQueue,
                                  &kWorkerQueueLimit,
                                  &kEventsQueued,
                                  &kEventsQueuedBytes,
                                  &kEventsLimit,
                                  &kEventsAdded,
                                  &kEventsEnded,
                                  &kSpansQueued,
                                  &kSpansEnded,
                                  &kBackends,
                                  &kBackendFigures,
                                  &kBackendCounters,
                                  &kKeeperUp,
                                  &kKeeperStart,
                                  &kEngineStarts,
                                  &kEngineHangs,
                                  &kEngineGaps,
                                  &kEngineGapSeconds,
                                  &kFellBack,
                                  &kKeeperUpgrades,
                                  &kInstances,
                                  &kSockets,
                                  &kConnections,
                                  &kRequestsWaiting,
                                  &kRequestBytes,
                                  &kRequests,
                                  &kRequestsRefused,
                                  &kRequestsReplayed,
                                  &kRequestsDropped,
                                  &kProcesses,
                                  &kExitsKept,
                                  &kDescriptors,
                                  &kSandboxCpu,
                                  &kSandboxMemory,
                                  &kSandboxEngineCpu,
                                  &kSandboxCalls,
                                  &kSandboxBytes};

}  // namespace

std::span<const Family* const> AllFamilies() { return kAll; }

}  // namespace gantry::metrics
