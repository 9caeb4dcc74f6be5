// SPDX-License-Identifier: Apache-2.0
//
// The standard streams of a process whose client streams (`ttrpc+unix://...?streaming_id=`). The
// process has an end of a pipe, as it would have one of a fifo of the client's; a pump stands
// between the other end and whatever connection the client has, or has not:
//
//  - a client that goes away, as a containerd that is restarted does, changes nothing for the
//    process: what it writes waits in the pipe, and blocks it when that is full; what it reads
//    does not come to an end. The client comes back with a connection of the same name, and the
//    newer one takes the place of the older;
//  - output ends with a frame that says so, once the pipe has been read out. The connection is
//    closed when the client has answered that: one that is closed before makes containerd's reader
//    fail (its window updates do) with data still to be read. Who connects later is told the end
//    anew;
//  - input ends with the client's frame that says so, or when its connection has closed after
//    CloseIO. Where nobody reads any more the client is told to write, and that it cannot:
//    containerd waits for nothing else.
//
// What is under way to a client that is killed is lost with it, a window at the most: nobody knows
// what of it has been read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/sync/mutex.h>
#include <gantry/unique_fd.h>

#include "core/async/account.h"
#include "core/async/loop.h"
#include "core/io/stream_wire.h"

namespace gantry::io {

class Relay;

/// Runs on the relay's thread; must not block.
struct StreamEvents {
  /// Output: a client has heard of its end. Input: it has ended.
  std::function<void()> ended;
  /// That connection is not used any more.
  std::function<void(uint64_t number)> left;
  /// What a client did wrong.
  std::function<void(const std::string&)> wrong;
};

/// What the two have in common: a connection and what is waited for.
/// Thread: the relay's, but for construction, and destruction once it is closed.
class StreamPump : public std::enable_shared_from_this<StreamPump> {
 public:
  StreamPump(const StreamPump&) = delete;
  StreamPump& operator=(const StreamPump&) = delete;
  virtual ~StreamPump();

  /// From now on this connection, in place of the one before.
  void Attach(std::unique_ptr<StreamWire> wire);
  /// Lets all go; the connection is closed. Again: harmless.
  void Close();
  /// The same, and the connection stays as it is: the next engine has it.
  void Abandon();

 protected:
  StreamPump(Relay& relay, UniqueFd pipe, async::AccountPtr account, StreamEvents events);

  /// Whether the pipe is to be readable or writable, and what else is waited for.
  struct Wants {
    bool pipe = false;
    bool to_receive = false;
    bool to_send = false;
    /// More of a frame whose first bytes are there.
    bool more = false;
    /// Others have their turn first.
    bool again = false;
  };

  /// Moves what there is. False: there is no connection any more.
  virtual bool Move(Wants& wants) = 0;

  /// What is waited for without a connection.
  virtual void WithoutWire() {}

  virtual uint32_t PipeEvents() const = 0;

  virtual void OnAttached() {}

  virtual void OnLeft() {}

  void Run();
  /// Ends the watch, too.
  void ClosePipe();
  void LeaveWire();
  /// A connection that failed or broke the rules. `what`: nothing to be told where empty.
  void GiveUpWire(const std::string& what);
  void TellEnded();

  StreamWire* wire() const { return wire_.get(); }

  int pipe() const { return pipe_.get(); }

  async::Loop& loop() const;

  bool closed() const { return closed_; }

  /// Bytes in the pipe. Thread: any.
  size_t Queued() const;

 private:
  struct Side {
    async::WatchId watch;
    uint32_t events = 0;
  };

  void Arm(Side& side, int fd, uint32_t events);
  void Disarm(Side& side);

  Relay& relay_;
  const async::AccountPtr account_;
  StreamEvents events_;
  /// Guards against closing `pipe_`, which only the relay's thread does.
  mutable Mutex mutex_;
  UniqueFd pipe_;
  bool closed_ = false;
  std::unique_ptr<StreamWire> wire_;
  Side pipe_watch_;
  Side wire_watch_;
};

/// From a pipe to a client.
class OutputStream final : public StreamPump {
 public:
  /// `pipe`: the read end. None: it has ended, and a client knows.
  OutputStream(Relay& relay, UniqueFd pipe, async::AccountPtr account, StreamEvents events);

  /// Begins to watch.
  void Begin() { Run(); }

  /// Bytes that the client has not been sent. Thread: any.
  size_t Unsent() const { return Queued() + in_part_.load(std::memory_order_relaxed); }

  /// Nothing is to be passed on, for want of bytes or of a client. Thread: any.
  bool settled() const { return settled_.load(std::memory_order_relaxed); }

  /// Goes on by itself for a moment, until the client has heard of the end.
  void Linger();

 private:
  bool Move(Wants& wants) override;
  bool MoveOut(Wants& wants);
  /// False: there is nothing to be sent now.
  Result<bool> BeginNext(Wants& wants);
  void WithoutWire() override;
  uint32_t PipeEvents() const override;

  void OnAttached() override { settled_ = false; }

  void OnLeft() override { settled_ = true; }

  bool at_end_ = false;
  async::TimerId linger_;
  std::atomic<size_t> in_part_ = 0;
  std::atomic<bool> settled_ = true;
};

/// From a client to a pipe.
class InputStream final : public StreamPump {
 public:
  /// `pipe`: the write end. None: it has ended.
  InputStream(Relay& relay, UniqueFd pipe, async::AccountPtr account, StreamEvents events);

  void Begin() { Run(); }

  /// The client will not come back: its connection's end is the input's.
  void EndWithConnection();
  /// Nobody reads.
  void Refuse();

 private:
  bool Move(Wants& wants) override;
  /// False: there is no connection any more.
  bool Allow(Wants& wants);
  void WithoutWire() override;
  uint32_t PipeEvents() const override;
  void End();

  bool ends_with_connection_ = false;
};

}  // namespace gantry::io
