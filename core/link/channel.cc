// SPDX-License-Identifier: Apache-2.0
//
// The link on a loop. Messages that cannot be sent at once are queued; the owner bounds that by
// `queued_bytes`. When writing fails nothing is reported yet: what the peer still had to say is
// read first, and the end of that is what closes the channel, so that a peer's last messages are
// not lost. Callbacks may destroy the channel: its state outlives each of them.
#include "core/link/channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gantry::link {
namespace {

/// So many reads in one turn, so that a busy peer does not starve the others.
constexpr int kReadsPerTurn = 16;

struct Outgoing {
  std::string bytes;
  size_t sent = 0;
  std::vector<UniqueFd> fds;
};

/// One sendmsg(2) of what is left. Returns the bytes sent, 0 for "not now".
Result<size_t> SendSome(int socket, const Outgoing& out) {
  iovec data{const_cast<char*>(out.bytes.data()) + out.sent, out.bytes.size() - out.sent};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (out.sent == 0 && !out.fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * out.fds.size());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * out.fds.size());
    for (size_t i = 0; i < out.fds.size(); ++i) {
      const int fd = out.fds[i].get();
      std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) {
    return static_cast<size_t>(sent);
  }
  if (errno == EAGAIN || errno == EINTR) {
    return 0;
  }
  return std::unexpected(
      Error{Code::kUnavailable, errno, "write the link: " + ErrnoName(errno), {}});
}

}  // namespace

/// Shared with the loop's callback, so that a callback may destroy the channel.
struct Channel::State {
  State(async::Loop& its_loop, UniqueFd its_socket, OnMessage message, OnClosed closed)
      : loop(its_loop),
        socket(std::move(its_socket)),
        on_message(std::move(message)),
        on_closed(std::move(closed)) {}

  async::Loop& loop;
  UniqueFd socket;
  OnMessage on_message;
  OnClosed on_closed;
  async::WatchId watch{};
  Assembler in;
  std::deque<Outgoing> out;
  size_t queued = 0;
  /// The owner wants no more callbacks, or there is nothing more to come.
  bool silent = false;
  bool broken = false;

  void Ready(uint32_t events);
  bool ReadOnce();
  bool DeliverAll();
  void Flush();
  void Silence();
  void Close(Error why);
};

void Channel::State::Silence() {
  silent = true;
  if (watch) {
    loop.Unwatch(std::exchange(watch, {}));
  }
}

void Channel::State::Close(Error why) {
  Silence();
  broken = true;
  out.clear();
  queued = 0;
  on_closed(std::move(why));
}

bool Channel::State::DeliverAll() {
  while (!silent) {
    auto next = in.Next();
    if (!next) {
      Close(std::move(next).error());
      return false;
    }
    std::optional<Message>& message = *next;
    if (!message) {
      return true;
    }
    on_message(*std::move(message));
  }
  return false;
}

bool Channel::State::ReadOnce() {
  auto more = in.ReadFrom(socket.get());
  if (!more) {
    Close(std::move(more).error());
    return false;
  }
  return *more && DeliverAll();
}

void Channel::State::Ready(uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    Flush();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) {
    return;
  }
  for (int i = 0; i < kReadsPerTurn && !silent && ReadOnce(); ++i) {
  }
}

void Channel::State::Flush() {
  while (!out.empty() && !broken) {
    Outgoing& first = out.front();
    auto sent = SendSome(socket.get(), first);
    if (!sent && sent.error().sys_errno == ETOOMANYREFS) {
      // Too many descriptors in flight: the message goes without them, and says so.
      first.fds.clear();
      first.bytes[6] = first.bytes[7] = '\0';
      continue;
    }
    if (!sent) {
      // The read side tells the owner, after what the peer still had to say.
      broken = true;
      break;
    }
    if (*sent == 0) {
      break;
    }
    first.sent += *sent;
    queued -= *sent;
    first.fds.clear();
    if (first.sent == first.bytes.size()) {
      out.pop_front();
    }
  }
  if (watch) {
    loop.Rearm(watch, out.empty() || broken ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }
}

Channel::Channel(async::Loop& loop, UniqueFd socket, OnMessage on_message, OnClosed on_closed)
    : state_(std::make_shared<State>(loop, std::move(socket), std::move(on_message),
                                     std::move(on_closed))) {
  const int fd = state_->socket.get();
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  state_->watch = loop.Watch(fd, EPOLLIN, [state = state_](uint32_t events) {
    // Ready may take this callback, and its state, away.
    const auto hold = state;  // NOLINT(performance-unnecessary-copy-initialization)
    hold->Ready(events);
  });
}

Channel::~Channel() { state_->Silence(); }

Status Channel::Send(Type type, std::string_view body, std::vector<UniqueFd> fds) {
  State& state = *state_;
  state.loop.AssertLoopThread();
  if (state.broken) {
    return Fail(Code::kUnavailable, "write the link: the other side has closed it");
  }
  if (body.size() > kMaxBody || fds.size() > kMaxFds) {
    return Fail(Code::kResourceExhausted, "write the link: {} bytes and {} descriptors",
                body.size(), fds.size());
  }
  Outgoing message{EncodeHeader(type, body.size(), fds.size()), 0, std::move(fds)};
  message.bytes += body;
  state.queued += message.bytes.size();
  state.out.push_back(std::move(message));
  if (state.out.size() == 1) {
    state.Flush();
  }
  return {};
}

void Channel::Drain() {
  const auto hold = state_;
  while (!hold->silent && hold->ReadOnce()) {
  }
}

size_t Channel::queued_bytes() const { return state_->queued; }

bool Channel::closed() const { return state_->broken; }

bool Channel::idle() const { return !state_->broken && state_->out.empty() && state_->in.empty(); }

int Channel::fd() const { return state_->socket.get(); }

}  // namespace gantry::link
