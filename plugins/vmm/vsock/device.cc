// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/device.h"

#include <sys/eventfd.h>

#include <utility>

#include "plugins/vmm/vsock/report.h"

namespace gantry::vmm::vsock {
namespace {

/// As others begin, above what listens in a guest. Source: Firecracker 1.17,
/// src/vmm/src/devices/virtio/vsock/unix/muxer.rs.
constexpr uint32_t kFirstHostPort = 1U << 30;

/// A listener whose queue is full is tried again that often.
constexpr int kDialEveryMs = 2;
/// A guest is told that late, at the latest, that buffers of its own are free again: it does not
/// wait for these as long as there are others.
constexpr int kUntoldMs = 1;

constexpr size_t Number(QueueIndex index) { return static_cast<size_t>(index); }

}  // namespace

Device::Device(Poller& poller, DeviceSettings settings)
    : poller_(poller), settings_(std::move(settings)), next_host_port_(kFirstHostPort) {}

Status Device::Open() { return table_.Reserve(settings_.most_streams); }

Status Device::Start(QueueIndex index, const QueueLayout& layout, uint16_t base, bool event_index) {
  if (was_running_ && stopped_at_[Number(index)] != base) {
    // Another driver than the one whose streams these are.
    RemoveAll();
  }
  const bool to_guest = index == QueueIndex::kToGuest;
  GANTRY_CHECK_OK(QueueOf(index).Start(
      memory_, layout, base, to_guest ? Virtqueue::Access::kWrite : Virtqueue::Access::kRead,
      event_index));
  stopped_at_[Number(index)] = base;
  if (to_guest_.is_running() && from_guest_.is_running()) {
    was_running_ = true;
    broken_ = false;
    guest_waits_ = true;
    starved_ = false;
  }
  return {};
}

uint16_t Device::Stop(QueueIndex index) {
  Virtqueue& queue = QueueOf(index);
  if (queue.is_running()) {
    const UniqueFd& call = index == QueueIndex::kToGuest ? to_guest_call_ : from_guest_call_;
    if (queue.MustTell()) {
      eventfd_write(call.get(), 1);
    }
    stopped_at_[Number(index)] = queue.Stop();
  }
  return stopped_at_[Number(index)];
}

void Device::SetCall(QueueIndex index, UniqueFd call) {
  UniqueFd& mine = index == QueueIndex::kToGuest ? to_guest_call_ : from_guest_call_;
  mine = std::move(call);
  if (mine && QueueOf(index).is_running()) {
    // What the one before it was told of last may have been lost with it.
    eventfd_write(mine.get(), 1);
  }
}

Status Device::Remap() {
  // Both, whatever becomes of one: where they were there is nothing any more.
  const Status to_guest = to_guest_.Remap();
  Status from_guest = from_guest_.Remap();
  GANTRY_CHECK_OK(to_guest);
  return from_guest;
}

void Device::Reset() {
  for (const QueueIndex index : {QueueIndex::kToGuest, QueueIndex::kFromGuest}) {
    QueueOf(index).Stop();
  }
  stopped_at_ = {};
  RemoveAll();
  was_running_ = false;
  broken_ = false;
  guest_waits_ = false;
}

void Device::RemoveAll() {
  table_.ForEach([this](Stream& stream) { table_.Remove(stream); });
  resets_.Clear();
  greetings_ = 0;
  dials_ = 0;
}

void Device::Break(const char* which) {
  Report(
      "the guest's queue {} is not one that can be served: the device stands still until its "
      "driver starts anew",
      which);
  broken_ = true;
  was_running_ = false;
  guest_waits_ = false;
  RemoveAll();
}

bool Device::is_running() const {
  return to_guest_.is_running() && from_guest_.is_running() && !broken_;
}

bool Device::HasWork() const {
  return is_running() &&
         (guest_waits_ || (!starved_ && (table_.queued() > 0 || !resets_.IsEmpty())));
}

int Device::Limit() const {
  if (!is_running()) {
    return -1;
  }
  if (from_guest_.untold() > 0) {
    return kUntoldMs;
  }
  return dials_ > 0 ? kDialEveryMs : -1;
}

bool Device::Arm() {
  if (!is_running()) {
    return false;
  }
  if (from_guest_.Arm()) {
    guest_waits_ = true;
  }
  if (starved_ && to_guest_.Arm()) {
    starved_ = false;
  }
  return HasWork();
}

void Device::Disarm() {
  from_guest_.Disarm();
  to_guest_.Disarm();
}

void Device::OnQueue(QueueIndex index) {
  if (index == QueueIndex::kFromGuest) {
    guest_waits_ = true;
  } else {
    starved_ = false;
  }
}

void Device::Work(uint64_t now_ms) {
  now_ms_ = now_ms;
  if (!is_running()) {
    return;
  }
  TakeFromGuest();
  if (dials_ > 0) {
    RetryDials();
  }
  starved_ = starved_ && !to_guest_.HasMore();
  if (!broken_) {
    GiveToGuest();
  }
  if (!broken_) {
    Tell();
  }
}

void Device::Tell() {
  if (to_guest_.MustTell()) {
    eventfd_write(to_guest_call_.get(), 1);
  }
  // Buffers that come back to the guest are no news to it until it runs short of them.
  const uint16_t untold = from_guest_.untold();
  if (untold == 0) {
    return;
  }
  if (!untold_since_ms_) {
    untold_since_ms_ = now_ms_;
  }
  if (untold >= from_guest_.size() / 2 || now_ms_ - *untold_since_ms_ >= kUntoldMs) {
    untold_since_ms_.reset();
    if (from_guest_.MustTell()) {
      eventfd_write(from_guest_call_.get(), 1);
    }
  }
}

}  // namespace gantry::vmm::vsock
