// SPDX-License-Identifier: Apache-2.0
//
// The streaming half of CRI: containerd answers Exec, Attach and PortForward with
// a URL, and there speaks WebSocket ("v4.channel.k8s.io"): each message is a byte,
// the number of the channel, and data of that channel.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/harness/program.h"

namespace gantry::e2e {

/// Thread: the test's. Every wait is bounded; what arrives is kept. The destructor
/// hangs up, as a client that dies does.
class ChannelSocket {
 public:
  static constexpr size_t kChannels = 5;

  /// Connected and upgraded.
  static Result<ChannelSocket> Open(const std::string& url);

  /// What the socket does not take at once is written while reading.
  void Send(size_t channel, std::string_view data);

  /// All of the channel up to now.
  const std::string& Received(size_t channel) const { return received_.at(channel); }

  /// Reads until `done` says so. False when the deadline passed or the other side
  /// hung up first.
  bool ReadWhile(const std::function<bool()>& done, Duration deadline = kDeadline);

  /// Reads until the other side hangs up.
  bool ReadToEnd(Duration deadline = kDeadline);

 private:
  explicit ChannelSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  Status Upgrade(const std::string& host, const std::string& path);
  bool PumpOnce(Clock::time_point until);
  void Read();
  void Write();
  bool TakeMessage();

  UniqueFd fd_;
  bool upgraded_ = false;
  std::string in_;
  std::string out_;
  std::array<std::string, kChannels> received_;
};

}  // namespace gantry::e2e
