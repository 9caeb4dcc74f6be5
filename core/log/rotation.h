// SPDX-License-Identifier: Apache-2.0
//
// A log file that does not grow without end while its writer lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gantry::log {

/// Of the file that stdout and stderr go to. Thread: one at a time.
class Rotation {
 public:
  /// Off. `Begin` may come later.
  Rotation() = default;

  /// From now on `path`, which stderr is, becomes `path`.1 when it has more than
  /// `max_bytes`. Where stderr is something else, nothing is done.
  void Begin(std::string path, int64_t max_bytes);

  /// So many bytes were written.
  void Wrote(size_t bytes);

 private:
  void RotateIfLarge();

  std::string path_;
  int64_t max_bytes_ = 0;
  /// Since the size of the file was last checked.
  size_t written_ = 0;
};

/// The same of what `Write` writes (log.h): little more than twice that is kept. Thread: any.
void KeepBounded(std::string path, int64_t max_bytes);

}  // namespace gantry::log
