// SPDX-License-Identifier: Apache-2.0
//
// Messages on a UNIX stream socket: u32 length of the body, u16 type, u16 number
// of descriptors (all little endian), body. The descriptors come by SCM_RIGHTS
// with the header's first byte.
//
// `Channel` is one end on an event loop and never blocks; `BlockingChannel` is the
// client's end in programs that have no loop (shim, gantryctl).
//
// How descriptors find their message: recvmsg(2) on a stream socket ends a read behind
// the piece of data that carried descriptors, so one read brings at most one
// set, and it belongs to the last header that begins in that read. Sets are therefore
// queued and the n-th message that announces descriptors gets the n-th set,
// also where the kernel had to drop some of them (MSG_CTRUNC: the
// descriptor table is full); such a message says `fds_lost`.
// Source: Linux 6.1, net/unix/af_unix.c, unix_stream_read_generic.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/link/messages.h"

namespace gantry::link {

inline constexpr size_t kHeaderBytes = 8;
/// 4 MiB for the largest ttrpc message and room for what is around it.
inline constexpr size_t kMaxBody = (4U << 20) + (64U << 10);
inline constexpr size_t kMaxFds = 192;

/// A message as it was received.
struct Message {
  Type type{};
  std::string body;
  std::vector<UniqueFd> fds;
  /// The sender gave more descriptors than arrived.
  bool fds_lost = false;

  /// The body as the structure of `type`. Errors: kInvalidArgument also for another type.
  template <class T>
  Result<T> As() const {
    if (type != T::kType) {
      return Fail(Code::kInvalidArgument, "decode a link message: type {} instead of {}",
                  static_cast<int>(type), static_cast<int>(T::kType));
    }
    return DecodeProto<T>(body);
  }
};

/// The eight bytes in front of a body.
std::string EncodeHeader(Type type, size_t body_bytes, size_t fds);

/// Puts the bytes that arrive together to messages. Thread: any, one at a time.
class Assembler {
 public:
  /// One recvmsg(2). True: there may be more. False: nothing to read now.
  /// Errors: kUnavailable at the end of the stream. Blocks: never.
  Result<bool> ReadFrom(int socket);

  /// The next whole message, if there is one.
  /// Errors: kInvalidArgument for a header beyond the limits; the stream is then of no more use.
  Result<std::optional<Message>> Next();

  /// Nothing of a message is kept.
  bool empty() const { return begin_ == buffer_.size() && sets_.empty(); }

 private:
  std::string buffer_;
  size_t begin_ = 0;
  std::deque<std::vector<UniqueFd>> sets_;
};

/// One end of a conversation on a loop. Thread: loop's.
class Channel {
 public:
  using OnMessage = std::move_only_function<void(Message)>;
  /// The peer is gone, or sent what is no message. The channel is silent from then on.
  /// It may be destroyed in this callback, and in OnMessage.
  using OnClosed = std::move_only_function<void(Error)>;

  /// Owner: takes the socket and makes it non-blocking.
  Channel(async::Loop& loop, UniqueFd socket, OnMessage on_message, OnClosed on_closed);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// Sends now what the socket takes and keeps the rest. Blocks: never.
  /// Errors: kUnavailable when the peer is gone, kResourceExhausted for more
  /// descriptors or bytes than a message may have (nothing is sent then).
  Status Send(Type type, std::string_view body, std::vector<UniqueFd> fds = {});

  template <class T>
  Status Send(const T& message, std::vector<UniqueFd> fds = {}) {
    return Send(T::kType, EncodeProto(message), std::move(fds));
  }

  /// Delivers what has arrived, without limit: for a peer that has ended, so that
  /// its last messages are not lost.
  void Drain();

  /// Bytes accepted by Send that the socket has not taken yet.
  size_t queued_bytes() const;

  bool closed() const;

  /// Between two messages in both directions: another channel on this socket goes on
  /// where this one ends.
  bool idle() const;

  /// The socket, which stays the channel's.
  int fd() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A conversation without a loop. Thread: any, one at a time. Blocks: up to the deadline.
class BlockingChannel {
 public:
  explicit BlockingChannel(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Errors: kUnavailable when the peer is gone, kDeadlineExceeded.
  Status Send(Type type, std::string_view body, std::chrono::steady_clock::time_point deadline);
  Result<Message> Receive(std::chrono::steady_clock::time_point deadline);

  /// Sends `question` and reads its answer. A Failed becomes the error that it says.
  template <class Answer, class Question>
  Result<Answer> Ask(const Question& question, std::chrono::steady_clock::time_point deadline) {
    GANTRY_CHECK_OK(Send(Question::kType, EncodeProto(question), deadline));
    GANTRY_TRY(const Message answer, Receive(deadline));
    if (answer.type == Type::kFailed) {
      GANTRY_TRY(const Failed failed, answer.As<Failed>());
      return std::unexpected(Error{static_cast<Code>(failed.code), 0, failed.message, {}});
    }
    return answer.As<Answer>();
  }

 private:
  UniqueFd socket_;
  Assembler in_;
};

}  // namespace gantry::link
