// SPDX-License-Identifier: Apache-2.0
#include "core/config/config.h"

#include <optional>
#include <set>

#include <gantry/format.h>
#include <gantry/ids.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "core/config/collector_endpoint.h"
#include "core/config/listen_address.h"
#include "core/config/yaml.h"
#include "core/os/fs.h"

namespace gantry::config {
namespace {

// Far above what anybody writes.
constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr uint64_t kVersion = 1;
constexpr size_t kMostHandlers = 256;
constexpr size_t kMostBackends = 64;
constexpr size_t kKiB = size_t{1} << 10;
constexpr size_t kMiB = size_t{1} << 20;

Yaml::Reader Text(std::string& out) {
  return [&out](const Yaml& value) { return value.ReadText(out); };
}

template <class T>
Yaml::Reader Number(T& out, uint64_t least, uint64_t most) {
  return [&out, least, most](const Yaml& value) -> Status {
    uint64_t number = 0;
    GANTRY_CHECK_OK(value.ReadNumber(number, least, most));
    out = static_cast<T>(number);
    return {};
  };
}

Yaml::Reader Bytes(size_t& out, size_t least, size_t most) {
  return [&out, least, most](const Yaml& value) { return value.ReadBytes(out, least, most); };
}

Yaml::Reader Duration(Millis& out, Millis least, Millis most) {
  return [&out, least, most](const Yaml& value) { return value.ReadDuration(out, least, most); };
}

// Every deadline of a call: long enough to be met, short enough to be one.
Yaml::Reader Deadline(Millis& out) { return Duration(out, Millis(100), std::chrono::hours(1)); }

Status ReadVersion(const Yaml& value) {
  uint64_t version = 0;
  return value.ReadNumber(version, kVersion, kVersion);
}

template <class T>
struct Word {
  std::string_view text;
  T value;
};

// One of a few words; `expected` names them.
template <class T, size_t N>
Yaml::Reader OneOf(T& out, const Word<T> (&words)[N], const char* expected) {
  return [&out, &words, expected](const Yaml& value) -> Status {
    std::string text;
    GANTRY_CHECK_OK(value.ReadText(text));
    for (const Word<T>& word : words) {
      if (word.text == text) {
        out = word.value;
        return {};
      }
    }
    return value.Wrong(Format("expected {}", expected));
  };
}

Status ReadLog(const Yaml& log, Config& config) {
  static constexpr Word<LogLevel> kLevels[] = {{"debug", LogLevel::kDebug},
                                               {"info", LogLevel::kInfo},
                                               {"warning", LogLevel::kWarning},
                                               {"error", LogLevel::kError}};
  return log.ReadMap(
      {{"level", OneOf(config.log_level, kLevels, "debug, info, warning or error")}});
}

Status CheckName(const std::string& name, const Yaml& at) {
  return IsValidId(name) ? Status()
                         : at.Wrong("a name has 1 to 76 letters, digits, and single '.', '_', '-'");
}

Status ReadHandlers(const Yaml& handlers, Config& config) {
  return handlers.EachMember(
      kMostHandlers, [&](const std::string& name, const Yaml& value) -> Status {
        Handler handler;
        handler.line = value.line();
        GANTRY_CHECK_OK(CheckName(name, value));
        GANTRY_CHECK_OK(value.ReadMap(
            {{"backend", Text(handler.backend)}, {"options", [&](const Yaml& options) {
                                                    return options.ReadOptions(handler.options);
                                                  }}}));
        if (!IsValidId(handler.backend)) {
          return value.Wrong(handler.backend.empty() ? "backend is missing"
                                                     : "backend is not a backend's name");
        }
        config.handlers.insert_or_assign(name, std::move(handler));
        return {};
      });
}

Status ReadBackends(const Yaml& backends, Config& config) {
  return backends.EachMember(
      kMostBackends, [&](const std::string& name, const Yaml& value) -> Status {
        Backend backend;
        backend.line = value.line();
        GANTRY_CHECK_OK(CheckName(name, value));
        GANTRY_CHECK_OK(value.ReadMap(
            {{"path", Text(backend.path)}, {"options", [&](const Yaml& options) {
                                              return options.ReadOptions(backend.options);
                                            }}}));
        if (!backend.path.empty() && !backend.path.starts_with('/')) {
          return value.Wrong("path is not absolute");
        }
        config.backends.insert_or_assign(name, std::move(backend));
        return {};
      });
}

Status ReadLimits(const Yaml& map, Limits& limits) {
  return map.ReadMap({
      {"max_spec_bytes", Bytes(limits.max_spec_bytes, 64 * kKiB, 64 * kMiB)},
      {"worker_threads", Number(limits.worker_threads, 1, 256)},
      {"max_workers_per_sandbox", Number(limits.max_workers_per_sandbox, 1, 256)},
      {"max_queued_calls", Number(limits.max_queued_calls, 16, 1'000'000)},
      {"max_queued_calls_per_sandbox", Number(limits.max_queued_calls_per_sandbox, 16, 1'000'000)},
      {"max_calls_per_sandbox", Number(limits.max_calls_per_sandbox, 64, 1'000'000)},
      {"max_bytes_per_sandbox", Bytes(limits.max_bytes_per_sandbox, 8 * kMiB, 1024 * kMiB)},
      {"max_exec_bytes", Bytes(limits.max_exec_bytes, 8 * kMiB, 16'384 * kMiB)},
      {"max_execs_per_container", Number(limits.max_execs_per_container, 1, 65'536)},
      {"max_waits_per_connection", Number(limits.max_waits_per_connection, 16, 1'000'000)},
      {"max_descriptors_per_sandbox", Number(limits.max_descriptors_per_sandbox, 1, 16'384)},
  });
}

Status ReadTimeouts(const Yaml& map, Timeouts& timeouts) {
  return map.ReadMap({
      {"create", Deadline(timeouts.create)},
      {"start", Deadline(timeouts.start)},
      {"exec_start", Deadline(timeouts.exec_start)},
      {"kill", Deadline(timeouts.kill)},
      {"delete", Deadline(timeouts.remove)},
      {"pause", Deadline(timeouts.pause)},
      {"stdio_open", Deadline(timeouts.stdio_open)},
      {"stdio_drain", Deadline(timeouts.stdio_drain)},
      {"stdio_unread", Duration(timeouts.stdio_unread, Millis(0), Millis(60'000))},
  });
}

Status ReadEvents(const Yaml& map, Events& events) {
  GANTRY_CHECK_OK(map.ReadMap({
      {"max_queued_per_container", Number(events.max_queued_per_container, 16, 65'536)},
      {"max_bytes_per_container", Bytes(events.max_bytes_per_container, 64 * kKiB, 32 * kMiB)},
      {"max_queued", Number(events.max_queued, 256, 10'000'000)},
      {"forward_timeout", Deadline(events.forward_timeout)},
      {"retry_min", Duration(events.retry_min, Millis(10), Millis(60'000))},
      {"retry_max", Duration(events.retry_max, Millis(10), Millis(600'000))},
  }));
  return events.retry_max < events.retry_min ? map.Wrong("retry_max is below retry_min") : Status();
}

Status ReadIo(const Yaml& map, Io& io) {
  return map.ReadMap({
      {"fifo_bytes", Bytes(io.fifo_bytes, 4 * kKiB, kMiB)},
      {"logger_stop", Deadline(io.logger_stop)},
  });
}

Status ReadHang(const Yaml& map, Hang& hang) {
  static constexpr Word<bool> kPolicies[] = {{"restart", true}, {"report", false}};
  return map.ReadMap({
      {"after", Duration(hang.after, Millis(1'000), Millis(600'000))},
      {"policy", OneOf(hang.restart, kPolicies, "restart or report")},
  });
}

Yaml::Reader SocketPath(std::string& out) {
  // sockaddr_un's.
  constexpr size_t kLongest = 107;
  return [&out](const Yaml& value) -> Status {
    GANTRY_CHECK_OK(value.ReadText(out));
    const bool absent = out.empty();
    return absent || (out.starts_with('/') && out.size() <= kLongest)
               ? Status()
               : value.Wrong("expected the absolute path of a socket, of at most 107 bytes");
  };
}

Status ReadGrpc(const Yaml& map, Grpc& grpc) {
  GANTRY_CHECK_OK(map.ReadMap(
      {{"address", SocketPath(grpc.address)}, {"containerd", SocketPath(grpc.containerd)}}));
  return grpc.containerd.empty() ? map.Wrong("containerd is empty") : Status();
}

Status ReadMetrics(const Yaml& map, Metrics& metrics) {
  static constexpr Word<bool> kYesOrNo[] = {{"true", true}, {"false", false}};
  return map.ReadMap({
      {"address",
       [&](const Yaml& value) -> Status {
         GANTRY_CHECK_OK(value.ReadText(metrics.address));
         return metrics.address.empty() || ParseListenAddress(metrics.address)
                    ? Status()
                    : value.Wrong(Format("expected {}", kListenAddressForms));
       }},
      {"sandboxes", OneOf(metrics.sandboxes, kYesOrNo, "true or false")},
  });
}

Status ReadTracing(const Yaml& map, Tracing& tracing) {
  return map.ReadMap({
      {"endpoint",
       [&](const Yaml& value) -> Status {
         GANTRY_CHECK_OK(value.ReadText(tracing.endpoint));
         if (tracing.endpoint.empty()) {
           return {};
         }
         const Result<std::string> target = CollectorTarget(tracing.endpoint);
         return target ? Status() : value.Wrong(target.error().message);
       }},
      {"sample", [&](const Yaml& value) { return value.ReadPart(tracing.sample); }},
  });
}

// What no single key can tell.
Status CheckWhole(const Yaml& default_handler, Config& config) {
  if (config.FindHandler("") == nullptr) {
    return default_handler.Wrong(
        Format("there is no handler '{}' below 'handlers'", config.default_handler));
  }
  for (const auto& [name, handler] : config.handlers) {
    config.backends.try_emplace(handler.backend);
  }
  return {};
}

Result<Config> ReadRoot(const Yaml& root, Config config) {
  // Not assigned to: a YAML::Node on the left of `=` changes what it stood for.
  std::optional<Yaml> default_handler;
  GANTRY_CHECK_OK(root.ReadMap({
      {"version", ReadVersion},
      {"log", [&](const Yaml& value) { return ReadLog(value, config); }},
      {"default_handler",
       [&](const Yaml& value) {
         default_handler.emplace(value);
         return value.ReadText(config.default_handler);
       }},
      {"handlers", [&](const Yaml& value) { return ReadHandlers(value, config); }},
      {"backends", [&](const Yaml& value) { return ReadBackends(value, config); }},
      {"limits", [&](const Yaml& value) { return ReadLimits(value, config.limits); }},
      {"timeouts", [&](const Yaml& value) { return ReadTimeouts(value, config.timeouts); }},
      {"events", [&](const Yaml& value) { return ReadEvents(value, config.events); }},
      {"io", [&](const Yaml& value) { return ReadIo(value, config.io); }},
      {"hang", [&](const Yaml& value) { return ReadHang(value, config.hang); }},
      {"grpc", [&](const Yaml& value) { return ReadGrpc(value, config.grpc); }},
      {"metrics", [&](const Yaml& value) { return ReadMetrics(value, config.metrics); }},
      {"tracing", [&](const Yaml& value) { return ReadTracing(value, config.tracing); }},
  }));
  GANTRY_CHECK_OK(CheckWhole(default_handler ? *default_handler : root, config));
  return config;
}

bool IsWarm(const BackendOptions& options) {
  const auto json = oci::Json::Parse(options.json, "options");
  const auto is_set = [&](const char* key) {
    uint64_t number = 0;
    return (*json)[key].Read(number) && number > 0;
  };
  return json && (is_set("warm") || is_set("template"));
}

}  // namespace

const Handler* Config::FindHandler(std::string_view name) const {
  const auto found = handlers.find(std::string(name.empty() ? default_handler : name));
  return found == handlers.end() ? nullptr : &found->second;
}

std::vector<std::string> WarmBackends(const Config& config) {
  std::set<std::string> names;
  for (const auto& [name, handler] : config.handlers) {
    const auto backend = config.backends.find(handler.backend);
    if (IsWarm(handler.options) ||
        (backend != config.backends.end() && IsWarm(backend->second.options))) {
      names.insert(handler.backend);
    }
  }
  return {names.begin(), names.end()};
}

Config Defaults() {
  Config config;
  config.handlers["runc"].backend = "runc";
  config.backends["runc"];
  return config;
}

Result<Config> Parse(const std::string& text, std::string file) {
  Config config = Defaults();
  config.file = file;
  // The seam to yaml-cpp.
  try {
    return ReadRoot(Yaml(YAML::Load(text), file), std::move(config));
  } catch (const YAML::Exception& error) {
    return Fail(Code::kInvalidArgument, "read configuration '{}:{}:{}': {}", file,
                error.mark.line + 1, error.mark.column + 1, error.msg);
  }
}

Result<Config> Load(const std::string& path) {
  auto text = ReadFile(path, kMaxFileBytes);
  if (text) {
    return Parse(*text, path);
  }
  if (text.error().code == Code::kNotFound) {
    return Defaults();
  }
  return std::unexpected(std::move(text).error().Within("read configuration"));
}

std::string PlaceOf(const Config& config, const Handler& handler, std::string_view message) {
  int line = handler.line;
  size_t longest = 0;
  for (const auto& [key, at] : handler.options.lines) {
    if (key.size() > longest && message.contains("'" + key + "'")) {
      longest = key.size();
      line = at;
    }
  }
  return line == 0 ? config.file : Format("{}:{}", config.file, line);
}

}  // namespace gantry::config
