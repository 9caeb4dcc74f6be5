// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/server.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "plugins/vmm/vsock/report.h"

namespace gantry::vmm::vsock {
namespace {

/// Of two limits the shorter one; negative ones have no end.
int Sooner(int one, int other) {
  return one < 0 || other < 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

uint64_t SteadyMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

Server::Server(ServerSettings settings)
    : settings_(std::move(settings)), device_(poller_, settings_.device) {}

Status Server::Open() {
  GANTRY_CHECK_OK(poller_.Open());
  GANTRY_CHECK_OK(device_.Open());
  GANTRY_CHECK_OK(SetNonblocking(settings_.front_ends.get(), true));
  GANTRY_CHECK_OK(SetNonblocking(settings_.hosts.get(), true));
  GANTRY_CHECK_OK(poller_.Add(settings_.hosts.get(),
                              {.source = Source::kHostListener, .ready = EPOLLIN | EPOLLET}));
  return WatchFrontEnds();
}

Status Server::WatchFrontEnds() {
  return poller_.Add(settings_.front_ends.get(),
                     {.source = Source::kFrontEndListener, .ready = EPOLLIN});
}

bool Server::Turn(int limit_ms) {
  const bool is_busy = device_.HasWork() || device_.Arm();
  for (const Event& event : poller_.Wait(is_busy ? 0 : Sooner(limit_ms, device_.Limit()))) {
    Dispatch(event);
  }
  device_.Disarm();
  // Those who come to a guest that is paused wait until it goes on.
  if (hosts_wait_ && !device_.is_paused()) {
    hosts_wait_ = false;
    device_.AcceptHosts(settings_.hosts.get());
  }
  device_.Work(settings_.now_ms());
  return !is_over_;
}

void Server::Dispatch(const Event& event) {
  switch (event.source) {
    case Source::kFrontEndListener:
      AcceptFrontEnd();
      return;
    case Source::kFrontEnd:
      ServeFrontEnd();
      return;
    case Source::kHostListener:
      hosts_wait_ = true;
      return;
    case Source::kStream:
      device_.OnHost(event);
      return;
    case Source::kFromGuest:
      device_.OnQueue(QueueIndex::kFromGuest);
      return;
    case Source::kToGuest:
      device_.OnQueue(QueueIndex::kToGuest);
      return;
  }
}

void Server::AcceptFrontEnd() {
  auto accepted = AcceptUnix(settings_.front_ends.get());
  if (!accepted) {
    return;
  }
  std::optional<UniqueFd>& front_end = *accepted;
  if (!front_end) {
    return;
  }
  UniqueFd& socket = *front_end;
  if (const Status watched =
          poller_.Add(socket.get(), {.source = Source::kFrontEnd, .ready = EPOLLIN});
      !watched) {
    Report("{}", watched.error().message);
    return;
  }
  // One at a time: others wait in the listener's queue.
  poller_.Remove(settings_.front_ends.get());
  front_end_.emplace(std::move(socket), poller_, device_);
}

void Server::ServeFrontEnd() {
  if (!front_end_) {
    return;
  }
  const Status served = front_end_->Serve();
  if (served) {
    return;
  }
  if (served.error().code != Code::kUnavailable) {
    Report("{}", served.error().message);
  }
  front_end_.reset();
  if (!settings_.reconnects) {
    is_over_ = true;
  } else if (const Status watched = WatchFrontEnds(); !watched) {
    Report("{}", watched.error().message);
    is_over_ = true;
  }
}

}  // namespace gantry::vmm::vsock
