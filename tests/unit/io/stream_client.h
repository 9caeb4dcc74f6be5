// SPDX-License-Identifier: Apache-2.0
//
// containerd's end of a stream: reads frames of ttrpc with what is in them, and allows more as it
// takes what it was sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gantry/unique_fd.h>

#include "core/io/stream_wire.h"

namespace gantry::io {

/// What frames say, all in their order.
struct StreamFrames {
  std::string data;
  std::vector<uint32_t> windows;
  size_t longest_data = 0;
  int ends = 0;
  /// Nothing came behind the first end.
  bool ends_last = true;
  /// Bytes of a frame that is not whole.
  size_t rest = 0;
};

/// Fails the test for what is no such frame.
StreamFrames ParseStream(std::string_view bytes);

/// A whole frame with data, as containerd writes it.
std::string DataFrame(std::string_view data);

class StreamClient {
 public:
  /// `allows`: keeps a window open, and answers the end. Else it only looks.
  explicit StreamClient(uint64_t number, bool allows = true);
  ~StreamClient();
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  /// The keeper's end. Once.
  StreamConnection Take();

  bool Send(std::string_view bytes);
  /// As containerd, no more than it is allowed. False: it may not, or nobody takes it.
  bool Write(std::string_view data);
  bool Allow(uint32_t bytes);
  /// The end of what it says, and then of the connection.
  void End();
  /// As one that is killed.
  void Kill();

  bool AwaitData(const std::string& text);
  bool AwaitBytes(size_t bytes);
  bool AwaitEnd();
  /// The other side has closed.
  bool AwaitClosed();
  bool AwaitWindow(uint64_t bytes);

  std::string data();
  StreamFrames frames();
  /// It was never sent more than it had allowed.
  bool kept_to_the_window();

 private:
  void Run();
  void OnBytes();

  const uint64_t number_;
  const bool allows_;
  UniqueFd theirs_;
  UniqueFd ours_;
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;
  std::string bytes_;
  StreamFrames frames_;
  uint64_t allowed_ = 0;
  uint64_t written_ = 0;
  bool kept_ = true;
  std::thread thread_;
};

}  // namespace gantry::io
