// SPDX-License-Identifier: Apache-2.0
#include "core/testing/thread_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace gantry::fakes {

Result<std::unique_ptr<Watch>> ThreadWatch::Start(int fd, std::function<void()> ready) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake) {
    return FailErrno(errno, "watch descriptor {}", fd);
  }
  return std::make_unique<ThreadWatch>(fd, std::move(wake), std::move(ready));
}

ThreadWatch::ThreadWatch(int fd, UniqueFd wake, std::function<void()> ready)
    : shared_(std::make_shared<Shared>()) {
  shared_->wake = std::move(wake);
  shared_->ready = std::move(ready);
  thread_ = std::thread([fd, shared = shared_] { Run(fd, *shared); });
}

ThreadWatch::~ThreadWatch() {
  shared_->stop = true;
  eventfd_write(shared_->wake.get(), 1);
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void ThreadWatch::Run(int fd, const Shared& shared) {
  while (!shared.stop) {
    std::array<pollfd, 2> both = {{{fd, POLLIN | POLLRDHUP, 0}, {shared.wake.get(), POLLIN, 0}}};
    poll(both.data(), both.size(), -1);
    if (!shared.stop && both[0].revents != 0) {
      shared.ready();
    }
  }
}

}  // namespace gantry::fakes
