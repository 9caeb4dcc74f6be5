// SPDX-License-Identifier: Apache-2.0
//
// gantry.yaml: what the operator decides. Everything has a default, and an
// absent file means all of them; config/gantry.yaml documents every key. What
// is wrong is said with file:line:column, and nothing of a wrong file is used.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>

namespace gantry::config {

inline constexpr std::string_view kDefaultPath = "/etc/gantry/gantry.yaml";

using Millis = std::chrono::milliseconds;

/// Options that only a backend understands, with the place of each in the file,
/// so that the backend's complaint about a key can be shown with its line.
struct BackendOptions {
  /// A JSON object.
  std::string json = "{}";
  /// Line of each key; nested keys as `outer.inner`.
  std::map<std::string, int> lines;
};

struct Handler {
  std::string backend;
  BackendOptions options;
  /// Where it is in the file; 0: built in.
  int line = 0;
};

struct Backend {
  /// The shared object; empty: LIBEXEC/plugins/libgantry_NAME.so.
  std::string path;
  BackendOptions options;
  int line = 0;
};

struct Limits {
  size_t max_spec_bytes = size_t{16} << 20;
  int worker_threads = 8;
  int max_workers_per_sandbox = 4;
  size_t max_queued_calls = 4096;
  size_t max_queued_calls_per_sandbox = 1024;
  size_t max_calls_per_sandbox = 8192;
  size_t max_bytes_per_sandbox = size_t{64} << 20;
  size_t max_exec_bytes = size_t{256} << 20;
  size_t max_execs_per_container = 1024;
  size_t max_waits_per_connection = 4096;
  size_t max_descriptors_per_sandbox = 256;

  bool operator==(const Limits&) const = default;
};

struct Timeouts {
  Millis create{120'000};
  Millis start{60'000};
  Millis exec_start{60'000};
  Millis kill{10'000};
  Millis remove{30'000};
  Millis pause{10'000};
  Millis stdio_open{30'000};
  Millis stdio_drain{10'000};
  Millis stdio_unread{1'000};

  bool operator==(const Timeouts&) const = default;
};

struct Events {
  size_t max_queued_per_container = 1024;
  size_t max_bytes_per_container = size_t{4} << 20;
  size_t max_queued = 65'536;
  Millis forward_timeout{5'000};
  Millis retry_min{100};
  Millis retry_max{5'000};

  bool operator==(const Events&) const = default;
};

struct Io {
  size_t fifo_bytes = size_t{256} << 10;
  Millis logger_stop{12'000};

  bool operator==(const Io&) const = default;
};

/// When the engine's loop stands still.
struct Hang {
  Millis after{10'000};
  /// Else it is noted in the keeper's log, and left as it is.
  bool restart = true;

  bool operator==(const Hang&) const = default;
};

/// The gRPC server beside the engine.
struct Grpc {
  /// An absolute path of a socket; empty: there is none.
  std::string address;
  /// containerd's own socket, as its `grpc.address` says it.
  std::string containerd = "/run/containerd/containerd.sock";

  bool operator==(const Grpc&) const = default;
};

/// Figures for Prometheus.
struct Metrics {
  /// An absolute path of a socket, or a port of this host's alone (listen_address.h); empty: they
  /// are not served.
  std::string address;
  /// Also for each sandbox.
  bool sandboxes = false;

  bool operator==(const Metrics&) const = default;
};

/// Spans of calls and steps, for a collector of OpenTelemetry's.
struct Tracing {
  /// As `CollectorTarget` takes it (collector_endpoint.h); empty: none are made.
  std::string endpoint;
  /// Of the traces that begin here, the part that is kept: 0 to 1.
  double sample = 0.1;

  bool operator==(const Tracing&) const = default;
};

struct Config {
  /// What was read; empty: built-in defaults.
  std::string file;
  LogLevel log_level = LogLevel::kInfo;
  std::string default_handler = "runc";
  std::map<std::string, Handler> handlers;
  std::map<std::string, Backend> backends;
  Limits limits;
  Timeouts timeouts;
  Events events;
  Io io;
  Hang hang;
  Grpc grpc;
  Metrics metrics;
  Tracing tracing;

  /// Null: no such handler. An empty name is the default handler.
  const Handler* FindHandler(std::string_view name) const;
};

/// The built-in configuration: the handler `runc`, run by the backend `runc`.
Config Defaults();

/// The backends, each once, that have a handler whose options, or their own, say `warm` or
/// `template` and a number above 0. These keys alone mean something to gantry itself: such backends
/// are loaded when the engine starts, else when they are needed.
std::vector<std::string> WarmBackends(const Config& config);

/// Reads a file. Absent: the defaults.
/// Errors: kInvalidArgument `read configuration 'FILE:LINE:COLUMN': KEY: CAUSE`;
/// as `ReadFile` else. Blocks: for the file.
Result<Config> Load(const std::string& path);

/// The same for text at hand; `file` is what errors call it.
Result<Config> Parse(const std::string& text, std::string file);

/// Where a backend's complaint about a handler's options comes from, `FILE:LINE`:
/// the option that `message` names in single quotes, else the handler; the file
/// alone for what is built in.
std::string PlaceOf(const Config& config, const Handler& handler, std::string_view message);

}  // namespace gantry::config
