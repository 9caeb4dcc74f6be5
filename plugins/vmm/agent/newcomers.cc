// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/newcomers.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::vmm {
namespace {

constexpr int kDialsInTurn = 64;
/// Numbers of what is watched; from the next on they are newcomers'.
constexpr uint64_t kListener = 0;
constexpr uint64_t kTimer = 1;

bool AddTo(int epoll, int fd, uint64_t number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = number;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Newcomers>> Newcomers::On(UniqueFd listener,
                                                 std::chrono::milliseconds patience) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !timer || !AddTo(epoll.get(), listener.get(), kListener) ||
      !AddTo(epoll.get(), timer.get(), kTimer)) {
    return FailErrno(errno, "watch for the guest's agent");
  }
  return std::unique_ptr<Newcomers>(
      new Newcomers(std::move(listener), std::move(epoll), std::move(timer), patience));
}

Newcomers::Newcomers(UniqueFd listener, UniqueFd epoll, UniqueFd timer,
                     std::chrono::milliseconds patience)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      timer_(std::move(timer)),
      patience_(patience) {}

Result<std::optional<Greeted>> Newcomers::OnReadable(const std::string& session) {
  std::array<epoll_event, 32> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  Result<std::optional<Greeted>> heard = std::optional<Greeted>();
  for (int i = 0; i < ready; ++i) {
    const uint64_t number = events.at(static_cast<size_t>(i)).data.u64;
    Result<std::optional<Greeted>> one = std::optional<Greeted>();
    if (number == kListener) {
      Accept();
    } else if (number == kTimer) {
      if (Status late = DropLate(); !late) {
        one = std::unexpected(std::move(late).error());
      }
    } else {
      one = Hear(number, session);
    }
    if ((one && *one) || (!one && one.error().code == Code::kFailedPrecondition)) {
      heard = std::move(one);
      break;
    }
    if (!one) {
      heard = std::move(one);
    }
  }
  SetTimer();
  return heard;
}

// Without descriptors they wait in the queue.
void Newcomers::Accept() {
  for (int i = 0; i < kDialsInTurn; ++i) {
    std::optional<UniqueFd> accepted =
        AcceptUnix(listener_.get()).value_or(std::optional<UniqueFd>());
    if (!accepted) {
      return;
    }
    if (known_.size() >= kMost) {
      Drop(known_.begin());
    }
    const uint64_t number = ++last_number_;
    if (AddTo(epoll_.get(), accepted->get(), number)) {
      known_.push_back({.number = number,
                        .until = std::chrono::steady_clock::now() + patience_,
                        .newcomer = Newcomer(std::move(*accepted))});
    }
  }
}

void Newcomers::Drop(std::list<One>::iterator one) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, one->newcomer.fd(), nullptr);
  known_.erase(one);
}

Result<std::optional<Greeted>> Newcomers::Hear(uint64_t number, const std::string& session) {
  const auto one = std::ranges::find(known_, number, &One::number);
  if (one == known_.end()) {
    return std::optional<Greeted>();
  }
  const int fd = one->newcomer.fd();
  auto heard = one->newcomer.Hear(session);
  if (heard && !*heard) {
    return heard;
  }
  // Of one that was greeted the socket is open still, and somebody else's.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  known_.erase(one);
  return heard;
}

Status Newcomers::DropLate() {
  uint64_t times = 0;
  // Set anew meanwhile it is not over; who is late is seen by his own time.
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &times, sizeof(times));
  Status late;
  const Deadline now = std::chrono::steady_clock::now();
  while (!known_.empty() && known_.front().until <= now) {
    Drop(known_.begin());
    late = Fail(Code::kDeadlineExceeded, "it has said no hello within {} ms", patience_.count());
  }
  return late;
}

void Newcomers::SetTimer() {
  itimerspec time{};
  if (!known_.empty()) {
    const auto left = std::max<std::chrono::nanoseconds>(
        known_.front().until - std::chrono::steady_clock::now(), std::chrono::nanoseconds(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    time.it_value = {.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
  }
  ::timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace gantry::vmm
