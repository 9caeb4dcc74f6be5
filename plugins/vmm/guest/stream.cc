// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gantry::vmm::guest {
namespace {

/// As much as a pipe holds.
constexpr size_t kPartBytes = size_t{64} << 10;
/// One for all streams: there is one thread, and what does not go on at once is kept apart.
std::array<char, protocol::kHeaderBytes + kPartBytes> scratch;

bool TryLater(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

Stream::Stream(Loop& loop, UniqueFd socket, const std::string& token, UniqueFd source,
               UniqueFd sink, std::function<void(int error)> failed)
    : failed_(std::move(failed)),
      loop_(loop),
      socket_(std::move(socket)),
      source_(std::move(source)),
      sink_(std::move(sink)),
      to_socket_(protocol::Framed(token)) {
  on_socket_ = loop.On(socket_.get(), EPOLLOUT, [this](uint32_t events) { OnSocket(events); });
  WatchEnds();
}

Stream::Stream(Loop& loop, UniqueFd socket, const std::string& token,
               std::function<void(int error)> failed)
    : Stream(loop, std::move(socket), token, UniqueFd(), UniqueFd(), std::move(failed)) {
  waits_ = true;
}

void Stream::WatchEnds() {
  if (source_) {
    on_source_ = loop_.On(source_.get(), 0, [this](uint32_t) { OnSource(); });
  }
  if (sink_) {
    on_sink_ = loop_.On(sink_.get(), 0, [this](uint32_t) { OnSink(); });
  }
}

void Stream::Begin(std::string_view first, UniqueFd source, UniqueFd sink) {
  if (!socket_) {
    return;
  }
  waits_ = false;
  source_ = std::move(source);
  sink_ = std::move(sink);
  to_socket_ += protocol::Framed(first);
  WatchEnds();
  Arm();
}

void Stream::End(std::string_view last) {
  if (!socket_) {
    return;
  }
  waits_ = false;
  source_ended_ = true;
  to_socket_ += protocol::Framed(last) + protocol::Framed("");
  Arm();
}

void Stream::Connected() {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    failed_(error);
    Close();
    return;
  }
  connected_ = true;
}

void Stream::OnSocket(uint32_t events) {
  if (!connected_) {
    Connected();
  }
  if (socket_ && !to_socket_.empty() && !Flush()) {
    Close();
  }
  if (socket_ && waits_ && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    Close();
  }
  if (socket_ && !waits_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    ReadSocket();
  }
  Arm();
}

// What wakes whom, of what there is by now.
void Stream::Arm() {
  if (!socket_) {
    return;
  }
  if (!connected_) {
    on_socket_.Want(EPOLLOUT);
    return;
  }
  const bool takes = !sink_ || to_sink_.empty();
  // Of who waits for a process it is of interest whether he is still there.
  const uint32_t reads = waits_ ? uint32_t{EPOLLRDHUP} : (takes ? uint32_t{EPOLLIN} : 0U);
  on_socket_.Want(reads | (to_socket_.empty() ? 0U : uint32_t{EPOLLOUT}));
  on_source_.Want(source_ && to_socket_.empty() ? uint32_t{EPOLLIN} : 0U);
  on_sink_.Want(sink_ && !to_sink_.empty() ? uint32_t{EPOLLOUT} : 0U);
}

bool Stream::Flush() {
  size_t sent_bytes = 0;
  while (sent_bytes < to_socket_.size()) {
    const ssize_t sent = ::send(socket_.get(), to_socket_.data() + sent_bytes,
                                to_socket_.size() - sent_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (TryLater(errno)) {
        break;
      }
      return false;
    }
    sent_bytes += static_cast<size_t>(sent);
  }
  if (sent_bytes == to_socket_.size()) {
    std::string().swap(to_socket_);
  } else {
    to_socket_.erase(0, sent_bytes);
  }
  return true;
}

void Stream::OnSource() {
  if (!connected_ || !to_socket_.empty()) {
    return;  // Another event of the same turn has come before.
  }
  const ssize_t got = ::read(source_.get(), scratch.data() + protocol::kHeaderBytes,
                             scratch.size() - protocol::kHeaderBytes);
  if (got < 0 && TryLater(errno)) {
    return;
  }
  if (got <= 0) {  // A terminal that nobody has any more gives EIO.
    EndSource();
  } else {
    const auto header = protocol::HeaderOf(static_cast<size_t>(got));
    std::ranges::copy(header, scratch.begin());
    const size_t whole = protocol::kHeaderBytes + static_cast<size_t>(got);
    const ssize_t sent = ::send(socket_.get(), scratch.data(), whole, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && !TryLater(errno)) {
      Close();
      return;
    }
    const auto done = static_cast<size_t>(std::max<ssize_t>(sent, 0));
    to_socket_.assign(scratch.data() + done, whole - done);
  }
  Arm();
}

void Stream::EndSource() {
  on_source_.Reset();
  source_.reset();
  source_ended_ = true;
  to_socket_ += protocol::Framed("");
  if (!Flush()) {
    Close();
  }
}

void Stream::ReadSocket() {
  if (sink_ && !to_sink_.empty()) {
    return;
  }
  const ssize_t got = ::recv(socket_.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got < 0 && TryLater(errno)) {
    return;
  }
  // Of an output nothing comes but the close.
  if (got <= 0 || !Take({scratch.data(), static_cast<size_t>(got)})) {
    Close();
    return;
  }
  if (input_ended_ && to_sink_.empty() && !source_ && !source_ended_) {
    Close();
  }
}

bool Stream::Take(std::string_view bytes) {
  while (!bytes.empty() && !input_ended_) {
    if (frame_left_ == 0) {
      const size_t taken = std::min(bytes.size(), protocol::kHeaderBytes - header_has_);
      std::ranges::copy(bytes.substr(0, taken),
                        header_.begin() + static_cast<ptrdiff_t>(header_has_));
      header_has_ += taken;
      bytes.remove_prefix(taken);
      if (header_has_ < protocol::kHeaderBytes) {
        return true;
      }
      header_has_ = 0;
      frame_left_ = protocol::LengthIn({header_.data(), header_.size()});
      if (frame_left_ > kMaxFrame) {
        return false;
      }
      if (frame_left_ == 0) {
        input_ended_ = true;
      }
      continue;
    }
    const std::string_view payload = bytes.substr(0, frame_left_);
    Deliver(payload);
    frame_left_ -= payload.size();
    bytes.remove_prefix(payload.size());
  }
  if (input_ended_ && to_sink_.empty()) {
    EndSink();
  }
  return true;
}

void Stream::Deliver(std::string_view bytes) {
  while (sink_ && to_sink_.empty() && !bytes.empty()) {
    const ssize_t written = ::write(sink_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (!TryLater(errno)) {
        EndSink();  // Nobody reads it: what comes is read and thrown away.
      }
      break;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (sink_) {
    to_sink_ += bytes;
  }
}

void Stream::OnSink() {
  std::string left = std::move(to_sink_);
  to_sink_.clear();
  Deliver(left);
  if (input_ended_ && to_sink_.empty()) {
    EndSink();
    if (!source_ && !source_ended_) {
      Close();
      return;
    }
  }
  Arm();
}

void Stream::EndSink() {
  on_sink_.Reset();
  if (sink_) {
    // Of a socket, which the source is likewise; of all else there is nothing to be shut.
    ::shutdown(sink_.get(), SHUT_WR);
  }
  sink_.reset();
  to_sink_.clear();
}

void Stream::Close() {
  on_socket_.Reset();
  on_source_.Reset();
  on_sink_.Reset();
  source_.reset();
  sink_.reset();
  to_socket_.clear();
  to_sink_.clear();
  socket_.reset();
}

}  // namespace gantry::vmm::guest
