// SPDX-License-Identifier: Apache-2.0
//
// The conversation with the front end, which is the virtual machine monitor: it says where the
// guest's memory and queues are and hands over their descriptors. Requests come one after the
// other and are answered at once. It is not believed either: a guest may have taken it over. What
// is no request, or none that can be served, ends the conversation, or is answered with a failure
// where an answer is asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/vsock/device.h"
#include "plugins/vmm/vsock/poller.h"
#include "plugins/vmm/vsock/vhost_user.h"

namespace gantry::vmm::vsock {

/// Thread: the loop's. `poller` and `device` outlive it. Its end is the device's reset.
class FrontEnd {
 public:
  FrontEnd(UniqueFd socket, Poller& poller, Device& device);
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;
  ~FrontEnd();

  int fd() const { return socket_.get(); }

  /// Serves what has come. Errors: kUnavailable: it has left; others: what was wrong.
  /// Blocks: never.
  Status Serve();

 private:
  struct Queue {
    QueueLayout layout;
    uint16_t base = 0;
    bool has_addresses = false;
    bool enabled = false;
    bool started = false;
    UniqueFd kick;
  };

  using Payload = std::span<const char>;

  Result<bool> Receive();
  Status Handle();
  Status Dispatch(Request request, Payload payload);
  Status SetFeatures(Payload payload);
  Status SetProtocolFeatures(Payload payload);
  Status SetMemory(Payload payload);
  Status SetSize(Payload payload);
  Status SetAddresses(Payload payload);
  Status SetBase(Payload payload);
  Status GetBase(Payload payload);
  Status SetDescriptor(Request request, Payload payload);
  Status SetKick(uint32_t index, UniqueFd kick);
  Status SetEnable(Payload payload);
  Status GetConfig(Payload payload);
  void ResetQueues();

  Result<uint32_t> QueueIndexOf(uint64_t index) const;
  Status StartIfReady(uint32_t index);
  void StopQueue(uint32_t index);
  Status Answer(std::span<const char> payload);

  template <class T>
  Status Answer(const T& value) {
    return Answer(std::span(reinterpret_cast<const char*>(&value), sizeof(value)));
  }

  UniqueFd socket_;
  Poller& poller_;
  Device& device_;
  std::array<char, sizeof(MessageHeader) + kMaxPayload> message_{};
  size_t received_ = 0;
  std::vector<UniqueFd> descriptors_;
  MessageHeader header_;
  bool answered_ = false;
  uint64_t features_ = 0;
  uint64_t protocol_features_ = 0;
  std::array<Queue, kQueues> queues_;
};

}  // namespace gantry::vmm::vsock
