// SPDX-License-Identifier: Apache-2.0
//
// Each turn of the loops here looks at what the part holds and does one step, which the next
// engine can tell from what is written down and from the part: no two of them may be merged.
#include "core/io/stream_wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/splice.h"

namespace gantry::io {
namespace {

constexpr size_t kMoveBytes = size_t{64} << 10;
/// More than any client allows, and what may be added up without harm.
constexpr uint64_t kMostWindow = uint64_t{1} << 40;
/// What `Refuse` lets a client write before it learns that nobody reads. containerd counts in 32
/// bits with a sign.
constexpr uint32_t kRefusedWindow = uint32_t{1} << 28;

bool IsGone(const Error& error) {
  return error.sys_errno == EPIPE || error.sys_errno == ECONNRESET || error.sys_errno == ENOTCONN;
}

}  // namespace

Result<StreamFiles> StreamFiles::Make(StreamConnection connection) {
  StreamFiles made;
  GANTRY_TRY(made.state, CreateMemfd("gantry-stream"));
  GANTRY_CHECK_OK(StreamWire::Write(made.state.get(),
                                    {.number = connection.number, .stream = connection.stream}));
  GANTRY_TRY(auto sent, MakePipe());
  GANTRY_TRY(auto received, MakePipe());
  made.socket = std::move(connection.socket);
  made.sent = std::move(sent.first);
  made.received = std::move(received.first);
  return made;
}

Result<StreamFiles> StreamFiles::Duplicate() const {
  StreamFiles copy;
  GANTRY_TRY(copy.socket, socket.Duplicate());
  GANTRY_TRY(copy.state, state.Duplicate());
  GANTRY_TRY(copy.sent, sent.Duplicate());
  GANTRY_TRY(copy.received, received.Duplicate());
  return copy;
}

Result<std::unique_ptr<StreamWire>> StreamWire::Open(StreamFiles files, Role role) {
  State state;
  GANTRY_TRY(const std::string bytes, ReadAt(files.state.get(), 0, sizeof(state)));
  if (bytes.size() != sizeof(state)) {
    return Fail(Code::kInternal, "take up a client's stream: what is on record is no state");
  }
  std::memcpy(&state, bytes.data(), sizeof(state));
  GANTRY_TRY(UniqueFd sent_in, os::OpenPipeEnd(files.sent.get(), os::PipeEnd::kWrite));
  GANTRY_TRY(UniqueFd received_in, os::OpenPipeEnd(files.received.get(), os::PipeEnd::kWrite));
  GANTRY_CHECK_OK(SetNonblocking(files.socket.get(), true));
  std::unique_ptr<StreamWire> wire(
      new StreamWire(std::move(files), role, std::move(sent_in), std::move(received_in)));
  wire->state_ = state;
  return wire;
}

StreamWire::~StreamWire() = default;

/// A page is written as a whole or, by who is killed, not at all.
Status StreamWire::Write(int file, const State& state) {
  std::array<char, sizeof(State)> bytes{};
  std::memcpy(bytes.data(), &state, sizeof(state));
  return WriteAt(file, 0, {bytes.data(), bytes.size()});
}

Status StreamWire::Save(const State& next) {
  GANTRY_CHECK_OK(Write(files_.state.get(), next));
  state_ = next;
  return {};
}

size_t StreamWire::InPart() const {
  const size_t held = os::BytesQueued(files_.sent.get()).value_or(0);
  return held + (sending() ? state_.sent_left : 0);
}

// --- What we send ----------------------------------------------------------------

Status StreamWire::Begin(What what, uint32_t value, uint64_t window) {
  State next = state_;
  next.send = Send::kFill;
  next.sent_what = what;
  next.sent_value = value;
  next.sent_left = what == What::kData ? value : 0;
  next.sent_head = 1;
  next.window = window;
  return Save(next);
}

Status StreamWire::BeginData(size_t bytes) {
  return Begin(What::kData, static_cast<uint32_t>(bytes), state_.window - bytes);
}

Status StreamWire::BeginWindow(uint32_t more) {
  return Begin(What::kWindow, more, state_.window + more);
}

Status StreamWire::BeginEnd() { return Begin(What::kEnd, 0, state_.window); }

std::string StreamWire::HeadOfSent() const {
  switch (state_.sent_what) {
    case What::kData:
      return StreamDataHead(state_.stream, state_.sent_value);
    case What::kWindow:
      return StreamWindowFrame(state_.stream, state_.sent_value);
    default:
      return StreamEndFrame(state_.stream);
  }
}

/// False: it waits for the pipe.
Result<bool> StreamWire::FillSent(int pipe) {
  GANTRY_TRY(const size_t held, os::BytesQueued(files_.sent.get()));
  const std::string head = state_.sent_head != 0 ? HeadOfSent() : std::string();
  if (held < head.size()) {
    // Into an empty pipe: all of it.
    GANTRY_CHECK_OK(os::WriteSome(sent_in_.get(), head));
    return true;
  }
  const size_t left = state_.sent_left - (held - head.size());
  if (left > 0) {
    GANTRY_TRY(const Transfer moved, os::Splice(pipe, sent_in_.get(), left));
    if (moved.bytes > 0) {
      return true;
    }
    if (held == 0) {
      return false;
    }
  }
  State next = state_;
  next.send = Send::kPass;
  next.sent_left = static_cast<uint32_t>(left);
  next.sent_head = 0;
  GANTRY_CHECK_OK(Save(next));
  return true;
}

Result<StreamWire::Moved> StreamWire::PassSent(bool& again) {
  again = true;
  GANTRY_TRY(const size_t held, os::BytesQueued(files_.sent.get()));
  if (held > 0) {
    const auto moved = os::Splice(files_.sent.get(), files_.socket.get(), held);
    again = moved && !moved->would_block;
    if (!moved) {
      return Moved::kGone;
    }
    return Moved::kSocketFull;
  }
  State next = state_;
  next.send = state_.sent_left > 0             ? Send::kFill
              : state_.sent_what == What::kEnd ? Send::kEnded
                                               : Send::kIdle;
  GANTRY_CHECK_OK(Save(next));
  return Moved::kIdle;
}

Result<StreamWire::Moved> StreamWire::SendOn(int pipe) {
  for (;;) {
    switch (state_.send) {
      case Send::kFill: {
        GANTRY_TRY(const bool filled, FillSent(pipe));
        if (!filled) {
          return Moved::kPipeEmpty;
        }
        break;
      }
      case Send::kPass: {
        bool again = false;
        GANTRY_TRY(const Moved moved, PassSent(again));
        if (!again) {
          return moved;
        }
        break;
      }
      case Send::kEnded:
        return Moved::kEnded;
      default:
        return Moved::kIdle;
    }
  }
}

// --- What comes -----------------------------------------------------------------

Result<StreamWire::Moved> StreamWire::LookAtNext() {
  std::array<char, kStreamHeadBytes> bytes{};
  const ssize_t seen = recv(socket(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  if (seen < 0) {
    return errno == EAGAIN || errno == EINTR ? Moved::kSocketEmpty : Moved::kGone;
  }
  if (seen == 0) {
    return Moved::kGone;
  }
  const StreamHead head = ReadStreamHead(state_.stream, {bytes.data(), static_cast<size_t>(seen)});
  if (head.kind == StreamHead::Kind::kPart) {
    return Moved::kFramePart;
  }
  const bool data = head.kind == StreamHead::Kind::kData;
  if (head.kind == StreamHead::Kind::kBad ||
      (data && (role_ == Role::kSender || head.value > state_.window))) {
    return Moved::kBad;
  }
  GANTRY_CHECK_OK(Expect(head));
  return Moved::kIdle;
}

Status StreamWire::Expect(const StreamHead& head) {
  State next = state_;
  next.receive = Receive::kTake;
  next.taken_bytes = static_cast<uint32_t>(head.bytes);
  next.received_value = head.value;
  switch (head.kind) {
    case StreamHead::Kind::kData:
      next.received_what = head.last ? What::kLastData : What::kData;
      break;
    case StreamHead::Kind::kWindow:
      next.received_what = role_ == Role::kSender ? What::kWindow : What::kOther;
      break;
    case StreamHead::Kind::kEnd:
      next.received_what = What::kEnd;
      break;
    default:
      next.received_what = What::kOther;
  }
  return Save(next);
}

Result<StreamWire::Moved> StreamWire::Take() {
  GANTRY_TRY(const size_t held, os::BytesQueued(files_.received.get()));
  State next = state_;
  if (state_.receive == Receive::kTake) {
    if (held < state_.taken_bytes) {
      GANTRY_TRY(const Transfer moved,
                 os::Splice(socket(), received_in_.get(), state_.taken_bytes - held));
      // All of it was there: it has come in more pieces than any client sends it in.
      return moved.bytes > 0 ? Moved::kIdle : Moved::kBad;
    }
    next.receive = Receive::kTaken;
    const bool data =
        state_.received_what == What::kData || state_.received_what == What::kLastData;
    if (data) {
      next.window -= state_.received_value;
      next.received_left = state_.received_value;
    } else if (state_.received_what == What::kWindow) {
      next.window = std::min(state_.window + state_.received_value, kMostWindow);
    }
    GANTRY_CHECK_OK(Save(next));
    return Moved::kIdle;
  }
  if (held > 0) {
    std::array<char, kStreamHeadBytes> thrown_away{};
    GANTRY_CHECK_OK(os::ReadSome(files_.received.get(), thrown_away));
    return Moved::kIdle;
  }
  const bool last = state_.received_what == What::kEnd || state_.received_what == What::kLastData;
  next.receive = state_.received_left > 0 ? Receive::kFill
                 : last                   ? Receive::kEnded
                                          : Receive::kIdle;
  GANTRY_CHECK_OK(Save(next));
  return Moved::kIdle;
}

Result<StreamWire::Moved> StreamWire::FillReceived() {
  GANTRY_TRY(const size_t held, os::BytesQueued(files_.received.get()));
  if (held > 0) {
    State next = state_;
    next.receive = Receive::kPass;
    next.received_left -= static_cast<uint32_t>(held);
    GANTRY_CHECK_OK(Save(next));
    return Moved::kIdle;
  }
  const auto moved =
      os::Splice(socket(), received_in_.get(), std::min<size_t>(state_.received_left, kMoveBytes));
  if (!moved && !IsGone(moved.error())) {
    return std::unexpected(moved.error());
  }
  if (!moved || moved->end) {
    return Moved::kGone;
  }
  return moved->would_block ? Moved::kSocketEmpty : Moved::kIdle;
}

Result<StreamWire::Moved> StreamWire::PassReceived(int pipe) {
  GANTRY_TRY(const size_t held, os::BytesQueued(files_.received.get()));
  if (held > 0) {
    const auto moved = os::Splice(files_.received.get(), pipe, held);
    if (!moved) {
      return Moved::kReaderGone;
    }
    return moved->would_block ? Moved::kPipeFull : Moved::kIdle;
  }
  State next = state_;
  next.receive = state_.received_left > 0                  ? Receive::kFill
                 : state_.received_what == What::kLastData ? Receive::kEnded
                                                           : Receive::kIdle;
  GANTRY_CHECK_OK(Save(next));
  return Moved::kIdle;
}

Result<StreamWire::Moved> StreamWire::ReceiveOn(int pipe) {
  for (;;) {
    Result<Moved> moved = Moved::kEnded;
    switch (state_.receive) {
      case Receive::kIdle:
        moved = LookAtNext();
        break;
      case Receive::kTake:
      case Receive::kTaken:
        moved = Take();
        break;
      case Receive::kFill:
        moved = FillReceived();
        break;
      case Receive::kPass:
        moved = PassReceived(pipe);
        break;
      case Receive::kEnded:
        break;
    }
    if (!moved || *moved != Moved::kIdle) {
      return moved;
    }
  }
}

void StreamWire::Refuse() {
  if (!sending()) {
    const std::string last = StreamWindowFrame(state_.stream, kRefusedWindow) +
                             (sent_end() ? std::string() : StreamEndFrame(state_.stream));
    // One who takes nothing is told by the end of the connection.
    send(socket(), last.data(), last.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  Close();
}

void StreamWire::Close() { shutdown(socket(), SHUT_RDWR); }

}  // namespace gantry::io
