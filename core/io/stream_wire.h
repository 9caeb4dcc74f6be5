// SPDX-License-Identifier: Apache-2.0
//
// One connection of a client's that streams, in the midst of which engines may be killed: the two
// ways of `stream_messages.h` over a socket, one with data, one with what it is allowed.
//
// Nobody else knows how much of a frame has been sent or received, and how much either side may
// send: containerd says only once that its window has grown, and waits for ever for what it has
// allowed. So bytes move as with the frames of sandboxes (frames.h): through a pipe for each way,
// the part, which is filled while it is empty and passed on before it is filled again, and every
// step is written down in a file in memory (`State`). A step is written before it is begun, so
// what the part holds says how far it had come. The keeper has socket, file and parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/io/stream_messages.h"

namespace gantry::io {

/// A client's connection, as the keeper has let it in and said so to its client.
struct StreamConnection {
  /// The keeper's number for it.
  uint64_t number = 0;
  /// Of ttrpc.
  uint32_t stream = 0;
  UniqueFd socket;
};

/// All of it that outlives an engine. Owner: the caller; a copy is to be with the keeper before
/// the first move.
struct StreamFiles {
  UniqueFd socket;
  UniqueFd state;
  /// Read ends of the parts.
  UniqueFd sent;
  UniqueFd received;

  /// Of a connection on which nothing has been sent or received.
  static Result<StreamFiles> Make(StreamConnection connection);
  Result<StreamFiles> Duplicate() const;

  explicit operator bool() const { return socket && state && sent && received; }
};

/// Thread: one at a time.
class StreamWire {
 public:
  /// Who has the data.
  enum class Role { kSender, kReceiver };

  /// What came of a move, or what it waits for.
  enum class Moved {
    /// Nothing is under way, and nothing is to be had.
    kIdle,
    kSocketEmpty,
    /// A frame has begun, of which too little has come to know what it is.
    kFramePart,
    kSocketFull,
    kPipeEmpty,
    kPipeFull,
    /// The other side has said its last.
    kEnded,
    /// The connection is broken, or closed by the other side.
    kGone,
    /// The other side does not keep to the rules.
    kBad,
    /// Nobody reads the pipe any more.
    kReaderGone,
  };

  /// Errors: kInternal: these are no such files.
  static Result<std::unique_ptr<StreamWire>> Open(StreamFiles files, Role role);
  StreamWire(const StreamWire&) = delete;
  StreamWire& operator=(const StreamWire&) = delete;
  ~StreamWire();

  uint64_t number() const { return state_.number; }

  int socket() const { return files_.socket.get(); }

  /// So much may be sent, or may come.
  uint64_t window() const { return state_.window; }

  /// The last of ours has been sent.
  bool sent_end() const { return state_.send == Send::kEnded; }

  /// No frame of ours is under way.
  bool sending() const { return state_.send != Send::kIdle && state_.send != Send::kEnded; }

  /// A frame of theirs has begun, and has not been passed on as a whole.
  bool receiving() const {
    return state_.receive != Receive::kIdle && state_.receive != Receive::kEnded;
  }

  /// What has been taken out of the pipe and is not in the socket yet.
  size_t InPart() const;

  /// Begin a frame, which `Send` sends; only while none is under way.
  /// `bytes`: so many are in the pipe, of which nobody else takes any.
  Status BeginData(size_t bytes);
  Status BeginWindow(uint32_t more);
  Status BeginEnd();
  /// Sends what has begun. `pipe`: where data comes from; < 0: there is none.
  /// kIdle, kEnded: it has been sent.
  Result<Moved> SendOn(int pipe);
  /// Takes what has come. `pipe`: where data goes; < 0: there must be none.
  Result<Moved> ReceiveOn(int pipe);

  /// A last word to a client that still sends though nobody reads: as containerd waits for a window
  /// and for nothing else, it gets one, so that it notices. Then both ways are closed.
  void Refuse();
  /// Closes both ways, whoever else has the socket.
  void Close();

 private:
  enum class Send : uint32_t { kIdle = 0, kFill = 1, kPass = 2, kEnded = 3 };
  enum class Receive : uint32_t {
    kIdle = 0,
    kTake = 1,
    kTaken = 2,
    kFill = 3,
    kPass = 4,
    kEnded = 5
  };
  enum class What : uint32_t { kData = 0, kWindow = 1, kEnd = 2, kOther = 3, kLastData = 4 };

  /// Written as a whole.
  struct State {
    uint64_t number = 0;
    uint64_t window = 0;
    uint32_t stream = 0;
    /// kFill: the frame's head and then data are being put into the part; the head is made of
    /// `sent_what` and `sent_value`. kPass: the part is being passed on, `sent_left` bytes of data
    /// are to come after it.
    Send send = Send::kIdle;
    What sent_what = What::kData;
    uint32_t sent_value = 0;
    uint32_t sent_left = 0;
    /// The first fill of this frame, with its head.
    uint32_t sent_head = 0;
    /// kTake: `taken_bytes` are being put into the part. kTaken: they mean what they mean, and are
    /// thrown away. kFill: data is being put into the part, `received_left` bytes were to come
    /// before. kPass: it is being passed on.
    Receive receive = Receive::kIdle;
    What received_what = What::kData;
    uint32_t taken_bytes = 0;
    uint32_t received_value = 0;
    uint32_t received_left = 0;
    uint32_t unused = 0;
  };

  friend struct StreamFiles;

  StreamWire(StreamFiles files, Role role, UniqueFd sent_in, UniqueFd received_in)
      : files_(std::move(files)),
        role_(role),
        sent_in_(std::move(sent_in)),
        received_in_(std::move(received_in)) {}

  static Status Write(int file, const State& state);
  Status Save(const State& next);
  std::string HeadOfSent() const;
  Status Begin(What what, uint32_t value, uint64_t window);
  Result<bool> FillSent(int pipe);
  Result<Moved> PassSent(bool& again);
  Result<Moved> LookAtNext();
  Status Expect(const StreamHead& head);
  Result<Moved> Take();
  Result<Moved> FillReceived();
  Result<Moved> PassReceived(int pipe);

  StreamFiles files_;
  const Role role_;
  const UniqueFd sent_in_;
  const UniqueFd received_in_;
  State state_;
};

}  // namespace gantry::io
