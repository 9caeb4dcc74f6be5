// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/machine/ends.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/process/pidfd.h>

namespace gantry::vmm {
namespace {

Status AddTo(const UniqueFd& epoll, const UniqueFd& fd, EndedPart part, uint32_t how) {
  epoll_event event{};
  event.events = EPOLLIN | how;
  event.data.u32 = static_cast<uint32_t>(part);
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return FailErrno(errno, "watch a part of a machine");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Ends>> Ends::Make() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !timer) {
    return FailErrno(errno, "watch the parts of a machine");
  }
  GANTRY_CHECK_OK(AddTo(epoll, timer, EndedPart::kTime, 0));
  return std::unique_ptr<Ends>(new Ends(std::move(epoll), std::move(timer)));
}

Status Ends::Add(EndedPart part, const HostProcess& process) {
  const ProcessId id{.pid = process.pid().value, .start_time = process.start_time()};
  GANTRY_TRY(UniqueFd fd, OpenEndOf(id));
  GANTRY_CHECK_OK(AddTo(epoll_, fd, part, EPOLLONESHOT));
  processes_.push_back(std::move(fd));
  return {};
}

Status Ends::Watch(SandboxContext& context, std::function<void(EndedPart part)> ended) {
  ended_ = std::move(ended);
  GANTRY_TRY(watch_, context.WatchReadable(epoll_.get(), [this] { OnReadable(); }));
  return {};
}

void Ends::SetTime(std::chrono::milliseconds from_now) {
  constexpr int64_t kMilli = 1000;
  constexpr int64_t kMillion = 1'000'000;
  itimerspec time{};
  time.it_value = {.tv_sec = from_now.count() / kMilli,
                   .tv_nsec = from_now.count() % kMilli * kMillion};
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

void Ends::OnReadable() {
  std::array<epoll_event, 4> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  std::vector<EndedPart> parts;
  parts.reserve(events.size());
  for (int i = 0; i < count; ++i) {
    parts.push_back(static_cast<EndedPart>(events.at(static_cast<size_t>(i)).data.u32));
  }
  std::ranges::sort(parts);
  for (const EndedPart part : parts) {
    uint64_t times = 0;
    // Set anew meanwhile: it is not over.
    if (part == EndedPart::kTime && read(timer_.get(), &times, sizeof(times)) < 0) {
      continue;
    }
    ended_(part);
  }
}

}  // namespace gantry::vmm
