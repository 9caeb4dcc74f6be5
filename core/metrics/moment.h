// SPDX-License-Identifier: Apache-2.0
//
// What there is to say at one moment, as plain values: taken from the engine on its loop, and made
// into text elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/figures.h"

namespace gantry::metrics {

/// How often a method was answered with a code.
struct Answers {
  std::string service;
  std::string method;
  std::string code;
  uint64_t count = 0;
};

struct Calls {
  std::vector<Answers> answers;
  uint64_t running = 0;
  uint64_t refused = 0;
  uint64_t late = 0;
  uint64_t unheard = 0;
};

/// Threads of one kind.
struct Workers {
  /// "engine", "streams", or "backend", and then whose.
  std::string pool;
  std::string backend;
  uint64_t idle = 0;
  uint64_t busy = 0;
  uint64_t lost = 0;
  /// Calls that wait for one.
  uint64_t queued = 0;
};

struct Events {
  uint64_t added = 0;
  uint64_t published = 0;
  uint64_t dropped = 0;
  uint64_t refused = 0;
  uint64_t rejected = 0;
  uint64_t queued = 0;
  uint64_t queued_bytes = 0;
  uint64_t limit = 0;
};

/// Spans on their way to a collector.
struct Spans {
  uint64_t queued = 0;
  uint64_t dropped = 0;
  uint64_t exported = 0;
  uint64_t refused = 0;
};

struct Backend {
  std::string name;
  std::string version;
  bool in_use = false;
};

/// What a backend counts itself. Empty handler: for all.
struct BackendFigure {
  std::string backend;
  std::string handler;
  std::string name;
  uint64_t value = 0;
};

/// One sandbox, where these are asked for.
struct SandboxRow {
  std::string ns;
  std::string id;
  std::string backend;
  /// Absent: not known.
  std::optional<uint64_t> cpu_us{};
  std::optional<uint64_t> memory_bytes{};
  uint64_t engine_cpu_ns = 0;
  uint64_t calls = 0;
  uint64_t buffered_bytes = 0;
};

/// A process of ours.
struct Process {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0;
};

/// What the keeper says, which lives longer than an engine.
struct Keeper {
  double started_at = 0;
  uint64_t engine_starts = 0;
  uint64_t engine_hangs = 0;
  uint64_t engine_gaps = 0;
  double gap_seconds = 0;
  bool fell_back = false;
  uint64_t upgrades = 0;
  uint64_t instances = 0;
  uint64_t sockets = 0;
  uint64_t connections = 0;
  uint64_t requests_waiting = 0;
  uint64_t request_bytes = 0;
  uint64_t requests = 0;
  uint64_t requests_refused = 0;
  uint64_t requests_replayed = 0;
  uint64_t requests_dropped = 0;
  uint64_t processes = 0;
  uint64_t exits = 0;
  uint64_t descriptors = 0;
};

/// How many, by backend and state.
using ByState = std::map<std::pair<std::string, std::string>, uint64_t>;

struct Moment {
  std::string version;
  /// Seconds since 1970.
  double started_at = 0;
  ByState sandboxes;
  ByState containers;
  /// By backend.
  std::map<std::string, uint64_t> execs;
  Figures figures;
  Calls calls;
  std::vector<Workers> workers;
  /// Of each kind's queue.
  uint64_t worker_queue_limit = 0;
  Events events;
  /// Absent: none are made.
  std::optional<Spans> spans;
  std::vector<Backend> backends;
  std::vector<BackendFigure> backend_figures;
  std::vector<BackendFigure> backend_counters;
  /// Absent: not asked for.
  std::optional<std::vector<SandboxRow>> sandbox_rows;
  Process engine;
  /// Absent: it did not answer.
  std::optional<Keeper> keeper;
};

}  // namespace gantry::metrics
