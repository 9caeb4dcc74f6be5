// SPDX-License-Identifier: Apache-2.0
#include "core/os/poll.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace gantry::os {

// epoll's numbers are poll's.
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
              EPOLLHUP == POLLHUP);

Result<uint32_t> Poll(int fd, uint32_t events, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);
  const auto deadline = Clock::now() + std::min(limit, kLongest);
  while (true) {
    const auto left = std::max(deadline - Clock::now(), Clock::duration::zero());
    const auto secs = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{secs.count(), (left - secs).count()};
    pollfd entry{fd, static_cast<short>(events), 0};
    const int count = ppoll(&entry, 1, &wait, nullptr);
    if (count >= 0) {
      return count == 0 ? 0 : static_cast<uint32_t>(static_cast<unsigned short>(entry.revents));
    }
    if (errno != EINTR) {
      return FailErrno(errno, "poll descriptor {}", fd);
    }
  }
}

}  // namespace gantry::os
