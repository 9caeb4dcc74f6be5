// SPDX-License-Identifier: Apache-2.0
//
// The parts of the engine that the Task service works with, made and owned by
// the daemon.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "core/backend/services.h"

namespace gantry {
class SandboxBackend;
}

namespace gantry::backend {
class Counters;
}

namespace gantry::config {
struct Config;
}

namespace gantry::events {
class Publishers;
}

namespace gantry::io {
class Relay;
}

namespace gantry::trace {
class Recorder;
}

namespace gantry::task {

/// A backend that is ready for use.
struct BackendRef {
  std::string name;
  SandboxBackend* backend = nullptr;
};

/// How long after its deadline a backend's call counts as one that hangs.
inline constexpr std::chrono::milliseconds kOverdueAfter = std::chrono::seconds(3);

struct Parts {
  backend::Services services;
  const config::Config& config;
  io::Relay& relay;
  events::Publishers& publishers;
  backend::Counters& counters;
  trace::Recorder& recorder;
  /// The backend of that name, loaded now if it was not. Errors: why it cannot
  /// be used. Thread: workers.
  std::function<Result<BackendRef>(std::string_view name)> find_backend;
  /// Why the configuration could not be used; then nothing new is created.
  std::string config_error;
  std::chrono::milliseconds overdue_after = kOverdueAfter;
  /// For `mount::MountAll`; the engine's own.
  std::string mount_scratch{};
};

}  // namespace gantry::task
