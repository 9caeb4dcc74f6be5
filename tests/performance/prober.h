// SPDX-License-Identifier: Apache-2.0
//
// Clients that do the same again and again, and note how long the longest wait was.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gantry/error.h>

namespace gantry::bench {

/// Does one thing at a time, and never more often than the pace. Thread: any; it runs one
/// of its own.
class Prober {
 public:
  /// `once` returns when it is done; the first error ends it all.
  Prober(std::chrono::microseconds pace, std::function<Status()> once);
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  ~Prober();

  /// The longest time that `once` took; one that is under way is waited for.
  /// Units: ms. Errors: the first of `once`.
  Result<double> Stop();

 private:
  void Main(std::chrono::microseconds pace, const std::function<Status()>& once);
  void End();

  std::atomic<bool> stop_ = false;
  Status failed_;
  double longest_ = 0;
  std::thread thread_;
};

}  // namespace gantry::bench
