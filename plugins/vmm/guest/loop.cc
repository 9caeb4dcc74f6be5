// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/guest/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace gantry::vmm::guest {

Loop::Watch::Watch(Watch&& other) noexcept
    : loop_(std::exchange(other.loop_, nullptr)), number_(other.number_) {}

Loop::Watch& Loop::Watch::operator=(Watch&& other) noexcept {
  Reset();
  loop_ = std::exchange(other.loop_, nullptr);
  number_ = other.number_;
  return *this;
}

void Loop::Watch::Want(uint32_t events) {
  if (loop_ != nullptr) {
    loop_->Want(number_, events);
  }
}

void Loop::Watch::Reset() {
  if (Loop* const loop = std::exchange(loop_, nullptr)) {
    loop->Forget(number_);
  }
}

Result<std::unique_ptr<Loop>> Loop::Make() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) {
    return FailErrno(errno, "make a loop");
  }
  return std::unique_ptr<Loop>(new Loop(std::move(epoll)));
}

Loop::Watch Loop::On(int fd, uint32_t events, Ready ready) {
  const uint64_t number = ++last_;
  watched_[number] = {.fd = fd, .events = 0, .ready = std::make_shared<Ready>(std::move(ready))};
  Want(number, events);
  Watch watch;
  watch.loop_ = this;
  watch.number_ = number;
  return watch;
}

// With no event wanted the kernel would tell of errors and hang-ups all the same, again and again.
void Loop::Want(uint64_t number, uint32_t events) {
  const auto found = watched_.find(number);
  if (found == watched_.end() || found->second.events == events) {
    return;
  }
  Watched& one = found->second;
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  const int call = one.events == 0 ? EPOLL_CTL_ADD : (events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD);
  if (::epoll_ctl(epoll_.get(), call, one.fd, &event) == 0) {
    one.events = events;
  }
}

void Loop::Forget(uint64_t number) {
  Want(number, 0);
  watched_.erase(number);
}

void Loop::After(const void* name, std::chrono::milliseconds time, std::function<void()> then) {
  timers_[name] = {.at = std::chrono::steady_clock::now() + time, .then = std::move(then)};
}

int Loop::TimeLeft(std::chrono::milliseconds most) const {
  Deadline until = std::chrono::steady_clock::now() + most;
  for (const auto& [name, timer] : timers_) {
    until = std::min(until, timer.at);
  }
  return PollTimeout(until);
}

void Loop::RunTimers() {
  const Deadline now = std::chrono::steady_clock::now();
  for (;;) {
    const auto due =
        std::ranges::find_if(timers_, [now](const auto& entry) { return entry.second.at <= now; });
    if (due == timers_.end()) {
      return;
    }
    const std::function<void()> then = std::move(due->second.then);
    timers_.erase(due);
    then();
  }
}

Status Loop::Turn(std::chrono::milliseconds most) {
  std::array<epoll_event, 64> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), events.size(), TimeLeft(most));
  if (ready < 0 && errno != EINTR) {
    return FailErrno(errno, "wait for what is ready");
  }
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events.at(static_cast<size_t>(i));
    // One that was called before it may have ended its watch.
    const auto found = watched_.find(event.data.u64);
    if (found != watched_.end()) {
      const std::shared_ptr<Ready> call = found->second.ready;
      (*call)(event.events);
    }
  }
  RunTimers();
  return {};
}

}  // namespace gantry::vmm::guest
