// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/streams.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm {
namespace {

constexpr size_t kHelloBytes = protocol::kHeaderBytes + protocol::kTokenBytes;
constexpr int kAcceptsInTurn = 64;

bool Watch(const UniqueFd& epoll, const UniqueFd& fd, size_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
}

}  // namespace

Result<std::unique_ptr<StreamListener>> StreamListener::On(UniqueFd listener) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll || !Watch(epoll, listener, 0)) {
    return FailErrno(errno, "watch for streams of the guest");
  }
  return std::unique_ptr<StreamListener>(new StreamListener(std::move(listener), std::move(epoll)));
}

Result<std::string> StreamListener::Expect() {
  const std::lock_guard lock(mutex_);
  if (expected_.size() >= kMaxExpected) {
    return Fail(Code::kResourceExhausted, "expect a stream of the guest: {} are not taken",
                kMaxExpected);
  }
  std::string token = RandomName(protocol::kTokenBytes);
  expected_.emplace(token, UniqueFd());
  return token;
}

Result<UniqueFd> StreamListener::Take(const std::string& token, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto there = [&] {
    const auto found = expected_.find(token);
    return found == expected_.end() || found->second;
  };
  came_.wait_until(lock, deadline, there);
  const auto found = expected_.find(token);
  if (found == expected_.end()) {
    return Fail(Code::kFailedPrecondition, "take a stream of the guest: it is not expected");
  }
  UniqueFd socket = std::move(found->second);
  expected_.erase(found);
  if (!socket) {
    return Fail(Code::kDeadlineExceeded,
                "take a stream of the guest: the agent has not dialled it in time");
  }
  return socket;
}

void StreamListener::Forget(const std::string& token) {
  const std::lock_guard lock(mutex_);
  expected_.erase(token);
  came_.notify_all();
}

void StreamListener::OnReadable() {
  std::array<epoll_event, 32> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < ready; ++i) {
    const auto number = static_cast<size_t>(events.at(static_cast<size_t>(i)).data.u64);
    if (number == 0) {
      Accept();
    } else {
      Hear(number);
    }
  }
}

void StreamListener::Accept() {
  for (int i = 0; i < kAcceptsInTurn; ++i) {
    // Without descriptors it waits in the queue.
    std::optional<UniqueFd> accepted =
        AcceptUnix(listener_.get()).value_or(std::optional<UniqueFd>());
    if (!accepted) {
      return;
    }
    if (unknown_.size() >= kMaxUnknown) {
      Drop(unknown_.begin()->first);
    }
    const size_t number = ++last_number_;
    if (Watch(epoll_, *accepted, number)) {
      unknown_.emplace(number, Unknown{std::move(*accepted), {}});
    }
  }
}

void StreamListener::Drop(size_t number) {
  const auto found = unknown_.find(number);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.socket.get(), nullptr);
  unknown_.erase(found);
}

// Of what comes behind the token nothing is read.
void StreamListener::Hear(size_t number) {
  const auto found = unknown_.find(number);
  if (found == unknown_.end()) {
    return;
  }
  Unknown& one = found->second;
  std::array<char, kHelloBytes> bytes{};
  const ssize_t got =
      ::recv(one.socket.get(), bytes.data(), kHelloBytes - one.said.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (got > 0) {
    one.said.append(bytes.data(), static_cast<size_t>(got));
  }
  const bool wrong = one.said.size() >= protocol::kHeaderBytes &&
                     protocol::LengthIn(one.said) != protocol::kTokenBytes;
  if (got <= 0 || wrong) {
    Drop(number);
    return;
  }
  if (one.said.size() < kHelloBytes) {
    return;
  }
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, one.socket.get(), nullptr);
  UniqueFd socket = std::move(one.socket);
  const std::string token = one.said.substr(protocol::kHeaderBytes);
  unknown_.erase(found);
  const std::lock_guard lock(mutex_);
  const auto expected = expected_.find(token);
  // The first that has it is the agent's; a second one is nobody's.
  if (expected != expected_.end() && !expected->second) {
    expected->second = std::move(socket);
    came_.notify_all();
  }
}

}  // namespace gantry::vmm
