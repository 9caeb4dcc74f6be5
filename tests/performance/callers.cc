// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/callers.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace gantry::bench {
namespace {

constexpr int kSilenceMs = 10000;

}  // namespace

Callers::Callers() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void Callers::Add(UniqueFd socket, std::unique_ptr<Talk> talk) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = all_.size()}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event);
  all_.push_back({.socket = std::move(socket), .talk = std::move(talk)});
}

Status Callers::Send(One& one) {
  GANTRY_TRY(const std::string question, one.talk->Ask());
  one.sent = Clock::now();
  const ssize_t sent = send(one.socket.get(), question.data(), question.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(question.size())) {
    return FailErrno(sent < 0 ? errno : EIO, "ask the server");
  }
  return {};
}

Result<bool> Callers::Receive(const One& one) {
  std::array<char, 4096> buffer;
  const ssize_t got = recv(one.socket.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) {
    return FailErrno(got < 0 ? errno : ECONNRESET, "read the server's answer");
  }
  return one.talk->Hear({buffer.data(), static_cast<size_t>(got)});
}

Result<std::vector<double>> Callers::Turn(int calls) {
  std::vector<double> times;
  int sent = 0;
  for (One& one : all_) {
    GANTRY_CHECK_OK(Send(one));
    ++sent;
  }
  std::array<epoll_event, 64> events;
  for (int waiting = sent; waiting > 0;) {
    const int ready = epoll_wait(epoll_.get(), events.data(), events.size(), kSilenceMs);
    if (ready <= 0) {
      return Fail(Code::kDeadlineExceeded, "ask the server: no answer");
    }
    for (int i = 0; i < ready; ++i) {
      One& one = all_[events.at(static_cast<size_t>(i)).data.u64];
      GANTRY_TRY(const bool answered, Receive(one));
      if (!answered) {
        continue;
      }
      times.push_back(MillisecondsSince(one.sent) * 1000);
      if (sent < calls) {
        GANTRY_CHECK_OK(Send(one));
        ++sent;
      } else {
        --waiting;
      }
    }
  }
  return times;
}

}  // namespace gantry::bench
