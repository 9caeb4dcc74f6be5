// SPDX-License-Identifier: Apache-2.0
//
// A process that a test talks to through CRI: what Exec and Attach open.
#pragma once

#include <string>
#include <string_view>

#include "tests/harness/channel_socket.h"

namespace gantry::e2e {

/// Thread: the test's. The destructor hangs up.
class CriStream {
 public:
  explicit CriStream(ChannelSocket socket) : socket_(std::move(socket)) {}

  /// Reads its output until `text` comes after what earlier calls matched.
  bool ReadUntil(std::string_view text, Duration deadline = kDeadline);
  bool ReadErrorsUntil(std::string_view text, Duration deadline = kDeadline);

  void Write(std::string_view data);
  void Resize(int rows, int columns);

  /// Reads to the end: the exit code that containerd tells, or kNone.
  int Wait(Duration deadline = kDeadline);

  static constexpr int kNone = -1;

  const std::string& out() const { return socket_.Received(kOut); }

  const std::string& err() const { return socket_.Received(kErr); }

  /// containerd's last word, JSON.
  const std::string& status() const { return socket_.Received(kStatus); }

 private:
  enum Channel { kIn, kOut, kErr, kStatus, kResize };

  bool ReadChannel(Channel channel, size_t& matched, std::string_view text, Duration deadline);

  ChannelSocket socket_;
  size_t out_matched_ = 0;
  size_t err_matched_ = 0;
};

}  // namespace gantry::e2e
