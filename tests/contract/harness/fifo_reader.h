// SPDX-License-Identifier: Apache-2.0
//
// A client's fifo for an output, and its end of it.
#pragma once

#include <string>

#include <gantry/unique_fd.h>

namespace gantry::contract {

/// Thread: the test's. The fifo is removed with the object.
class FifoReader {
 public:
  /// Makes the fifo `path` and opens it before anybody writes.
  explicit FifoReader(std::string path);
  FifoReader(const FifoReader&) = delete;
  FifoReader& operator=(const FifoReader&) = delete;
  ~FifoReader();

  const std::string& path() const { return path_; }

  /// Until `text` has come; false where it does not, or the end comes first.
  bool ReadUntil(const std::string& text);
  /// Until the end of the stream; false where it does not come.
  bool ReadToEnd();

  const std::string& text() const { return text_; }

 private:
  bool ReadSome();

  const std::string path_;
  UniqueFd fd_;
  std::string text_;
  bool ended_ = false;
};

}  // namespace gantry::contract
