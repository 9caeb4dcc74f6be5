// SPDX-License-Identifier: Apache-2.0
//
// Stands for containerd's event service: takes every Forward and answers it at
// once, so that neither side waits, retries or gives up.
#pragma once

#include <string>
#include <thread>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::bench {

/// Thread: any; it runs one of its own.
class EventsEndpoint {
 public:
  EventsEndpoint() = default;
  EventsEndpoint(const EventsEndpoint&) = delete;
  EventsEndpoint& operator=(const EventsEndpoint&) = delete;
  ~EventsEndpoint();

  /// Listens at `path`. Errors: as bind(2).
  Status Start(const std::string& path);

 private:
  UniqueFd listener_;
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace gantry::bench
