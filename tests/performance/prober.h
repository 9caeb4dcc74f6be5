// SPDX-License-Identifier: Apache-2.0
//
// A client that asks for a container's State every millisecond, and notes how
// long the longest answer took.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include <gantry/error.h>

namespace gantry::bench {

/// Thread: any; it runs one of its own, with one connection.
class Prober {
 public:
  Prober() = default;
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  ~Prober();

  /// Asks from now on. Errors: as connect(2).
  Status Start(const std::string& socket, const std::string& id, const std::string& ns);
  /// The longest time from sending a State to its answer; a call that is under
  /// way is waited for. Units: ms. Errors: of the first call that failed.
  Result<double> Stop();

 private:
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  Status failed_;
  double longest_ = 0;
};

}  // namespace gantry::bench
