// SPDX-License-Identifier: Apache-2.0
//
// A client's end of a fifo.
#pragma once

#include <string>

#include <gantry/unique_fd.h>

#include "tests/harness/program.h"

namespace gantry::fault {

/// Makes the fifo and reads it. Thread: one at a time.
class StreamReader {
 public:
  explicit StreamReader(std::string path);

  const std::string& path() const { return path_; }

  /// All until its writers have closed it; what came in time where they do not.
  std::string ReadToEnd(e2e::Duration deadline = e2e::kLong);

 private:
  std::string path_;
  UniqueFd fd_;
};

/// The same for what a process reads.
class StreamWriter {
 public:
  explicit StreamWriter(std::string path);

  const std::string& path() const { return path_; }

  /// At most what fits into the fifo.
  void Write(const std::string& text) const;

  void Close() { fd_.reset(); }

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace gantry::fault
