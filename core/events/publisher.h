// SPDX-License-Identifier: Apache-2.0
//
// Publishes the outbox: one publisher per containerd, each with one connection
// to that containerd's ttrpc socket, made when there is something to say and
// then kept.
//
// Events of one container go out one after the other, those of different
// containers side by side. Whatever fails for want of containerd is tried again
// without end, with a pause that grows from 100 ms to 5 s; `Nudge` ends the
// pause (a connection from that containerd is a sign that it is back). An event
// that containerd calls invalid is dropped with a log line. An event may reach
// containerd twice when its acknowledgement was lost with the connection or the
// engine; never out of order.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gantry/error.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/events/event.h"
#include "core/events/outbox.h"

namespace gantry::events {

struct PublisherOptions {
  /// For connecting and for each Forward.
  std::chrono::nanoseconds timeout = std::chrono::seconds(5);
  std::chrono::nanoseconds backoff_min = std::chrono::milliseconds(100);
  std::chrono::nanoseconds backoff_max = std::chrono::seconds(5);
  /// Forwards at a time per containerd.
  size_t parallel = 16;
};

class Publisher;

/// All publishers of the engine. Thread: loop.
class Publishers {
 public:
  Publishers(async::Loop& loop, std::unique_ptr<Outbox> outbox, PublisherOptions options = {});
  Publishers(const Publishers&) = delete;
  Publishers& operator=(const Publishers&) = delete;
  /// `Stop` must have ended, or the loop must not run any more.
  ~Publishers();

  /// Who hears of each event when it is published, be there a containerd for it or not. Once,
  /// before the first one. Thread: loop.
  void Observe(std::function<void(const Event&)> observer) { observer_ = std::move(observer); }

  /// Begins with what the outbox holds already.
  void Start();
  /// Queues `event` and sees to its way to containerd. Refusals are logged and
  /// counted here: there is nothing that a caller could do.
  void Publish(Event event);
  /// containerd at `address` has shown a sign of life: try now.
  void Nudge(const std::string& address);
  /// Lets the Forwards that are under way end, within their timeout, and begins
  /// no more; what is queued stays in the journal.
  async::Task<void> Stop();

  const Outbox& outbox() const { return *outbox_; }

 private:
  Publisher& At(const std::string& address);

  async::Loop& loop_;
  std::unique_ptr<Outbox> outbox_;
  PublisherOptions options_;
  bool stopping_ = false;
  std::function<void(const Event&)> observer_;
  std::map<std::string, std::unique_ptr<Publisher>> publishers_;
};

}  // namespace gantry::events
