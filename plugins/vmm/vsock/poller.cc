// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/poller.h"

#include <cerrno>

namespace gantry::vmm::vsock {
namespace {

constexpr int kSourceAt = 56;
constexpr int kStreamAt = 32;

}  // namespace

Status Poller::Open() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) {
    return FailErrno(errno, "make an epoll instance");
  }
  return {};
}

Status Poller::Add(int fd, const Event& what) {
  epoll_event event{};
  event.events = what.ready;
  event.data.u64 = static_cast<uint64_t>(what.source) << kSourceAt |
                   static_cast<uint64_t>(what.index) << kStreamAt | what.generation;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return FailErrno(errno, "watch a descriptor");
  }
  return {};
}

void Poller::Remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::span<const Event> Poller::Wait(int limit_ms) {
  const int count = epoll_wait(epoll_.get(), raw_, kMostEvents, limit_ms);
  for (int i = 0; i < count; ++i) {
    const uint64_t data = raw_[i].data.u64;
    events_[i] = {.source = static_cast<Source>(data >> kSourceAt),
                  .index = static_cast<uint16_t>(data >> kStreamAt),
                  .generation = static_cast<uint32_t>(data),
                  .ready = raw_[i].events};
  }
  // Interrupted: nothing has happened.
  return {events_, static_cast<size_t>(count < 0 ? 0 : count)};
}

}  // namespace gantry::vmm::vsock
