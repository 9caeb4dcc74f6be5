// SPDX-License-Identifier: Apache-2.0
//
// The control connection, from the agent's end: it dials, says hello, and answers. When the
// connection breaks, or is not there yet, it dials again and again: the host may be restarting its
// engine, or the device may not be plugged in. What was under way on the old connection is answered
// to nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/guest/platform.h"
#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/protocol/frames.h"
#include "plugins/vmm/protocol/greeting.h"

namespace gantry::vmm::guest {

/// Thread: the loop's.
class Control {
 public:
  /// Between two tries; the first ones come faster.
  static constexpr std::chrono::milliseconds kFirstPause{3};
  static constexpr std::chrono::milliseconds kLongestPause{500};
  /// What may wait to be sent. A host that reads less is dialled anew.
  static constexpr size_t kMaxUnsent = size_t{8} << 20;
  /// Calls that are being answered; more are read when there are fewer.
  static constexpr size_t kMaxCalls = 512;

  using Answer = std::function<void(Result<std::string> body)>;
  using OnCall = std::function<void(protocol::Kind kind, const std::string& body, Answer answer)>;

  /// `hello`: what to say, but for `session`, which is this object's.
  Control(Loop& loop, Platform& platform, std::function<protocol::Hello()> hello, OnCall on_call)
      : loop_(loop),
        platform_(platform),
        hello_(std::move(hello)),
        on_call_(std::move(on_call)),
        frames_(protocol::kMaxFromHost) {}

  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  ~Control() { loop_.Cancel(this); }

  /// Dials, where there is no connection; at once.
  void Dial();
  /// An event. Without a welcome it is told to nobody.
  void Tell(protocol::Kind kind, std::string body);

  bool welcome() const { return version_ != 0; }

  /// All that was to be sent has been.
  bool flushed() const { return unsent_.empty(); }

 private:
  void OnSocket(uint32_t events);
  void Greet();
  void Read();
  Status TakeFrames();
  Status Take(const std::string& frame);
  Status TakeWelcome(const protocol::Envelope& envelope);
  void Send(const protocol::Envelope& envelope);
  void Flush();
  void Arm();
  void Break();

  Loop& loop_;
  Platform& platform_;
  const std::function<protocol::Hello()> hello_;
  const OnCall on_call_;
  UniqueFd socket_;
  Loop::Watch watch_;
  bool connected_ = false;
  uint32_t version_ = 0;
  std::string session_;
  /// Of this connection: an answer to a call of another one is dropped.
  uint64_t connection_ = 0;
  size_t calls_ = 0;
  protocol::FrameReader frames_;
  std::string unsent_;
  std::chrono::milliseconds pause_ = kFirstPause;
};

}  // namespace gantry::vmm::guest
