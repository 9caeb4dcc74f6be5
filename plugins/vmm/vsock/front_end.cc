// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/vsock/front_end.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::vmm::vsock {
namespace {

/// The payload as what it is to be; of another size it is none.
template <class T>
Result<T> As(std::span<const char> payload) {
  if (payload.size() != sizeof(T)) {
    return Fail(Code::kInvalidArgument, "read a request: it has {} bytes, not {}", payload.size(),
                sizeof(T));
  }
  T value;
  memcpy(&value, payload.data(), sizeof(T));
  return value;
}

constexpr bool IsServed(uint32_t index) { return index <= 1; }

}  // namespace

FrontEnd::FrontEnd(UniqueFd socket, Poller& poller, Device& device)
    : socket_(std::move(socket)), poller_(poller), device_(device) {
  descriptors_.reserve(kMaxMessageFds);
}

FrontEnd::~FrontEnd() {
  ResetQueues();
  device_.memory().Clear();
}

Status FrontEnd::Serve() {
  while (true) {
    GANTRY_TRY(const bool whole, Receive());
    if (!whole) {
      return {};
    }
    GANTRY_CHECK_OK(Handle());
    received_ = 0;
    descriptors_.clear();
  }
}

/// As much of one message as has come. False: more is to come.
Result<bool> FrontEnd::Receive() {
  while (true) {
    size_t wanted = sizeof(MessageHeader);
    if (received_ >= wanted) {
      memcpy(&header_, message_.data(), sizeof(header_));
      if (header_.size > kMaxPayload || (header_.flags & kVersionMask) != kVersion) {
        return Fail(Code::kInvalidArgument, "read request {}: {} bytes, flags {:#x}",
                    header_.request, header_.size, header_.flags);
      }
      wanted += header_.size;
      if (received_ == wanted) {
        return true;
      }
    }
    GANTRY_TRY(
        const Transfer transfer,
        RecvWithFds(socket_.get(), std::span(message_).subspan(received_, wanted - received_),
                    descriptors_));
    if (transfer.end) {
      return Fail(Code::kUnavailable, "the front end has left");
    }
    if (transfer.would_block) {
      return false;
    }
    if (descriptors_.size() > GuestMemory::kMaxRegions) {
      return Fail(Code::kInvalidArgument, "read a request: it comes with {} descriptors",
                  descriptors_.size());
    }
    received_ += transfer.bytes;
  }
}

/// An error ends the conversation.
Status FrontEnd::Handle() {
  const auto payload = std::span<const char>(message_).subspan(sizeof(header_), header_.size);
  answered_ = false;
  Status done = Dispatch(static_cast<Request>(header_.request), payload);
  const bool wants_answer =
      (header_.flags & kNeedsReply) != 0 && (protocol_features_ & kAcknowledges) != 0;
  if (!wants_answer || answered_) {
    return done;
  }
  return Answer(uint64_t{done ? 0U : 1U});
}

Status FrontEnd::Dispatch(Request request, Payload payload) {
  switch (request) {
    case Request::kGetFeatures:
      return Answer(kFeatures);
    case Request::kSetFeatures:
      return SetFeatures(payload);
    case Request::kSetOwner:
      return {};
    case Request::kResetOwner:
    case Request::kResetDevice:
      ResetQueues();
      return {};
    case Request::kSetMemoryTable:
      return SetMemory(payload);
    case Request::kSetQueueSize:
      return SetSize(payload);
    case Request::kSetQueueAddresses:
      return SetAddresses(payload);
    case Request::kSetQueueBase:
      return SetBase(payload);
    case Request::kGetQueueBase:
      return GetBase(payload);
    case Request::kSetQueueKick:
    case Request::kSetQueueCall:
    case Request::kSetQueueError:
      return SetDescriptor(request, payload);
    case Request::kGetProtocolFeatures:
      return Answer(kProtocolFeatures);
    case Request::kSetProtocolFeatures:
      return SetProtocolFeatures(payload);
    case Request::kGetQueueCount:
      return Answer(uint64_t{kQueues});
    case Request::kSetQueueEnable:
      return SetEnable(payload);
    case Request::kGetConfig:
      return GetConfig(payload);
    case Request::kSetConfig:
      return Fail(Code::kInvalidArgument, "change the configuration: a guest's CID stays");
  }
  return Fail(Code::kUnimplemented, "serve request {}: this device has not offered it",
              header_.request);
}

Status FrontEnd::SetFeatures(Payload payload) {
  GANTRY_TRY(const uint64_t features, As<uint64_t>(payload));
  if ((features & ~kFeatures) != 0) {
    return Fail(Code::kInvalidArgument, "take features {:#x}: only {:#x} were offered", features,
                kFeatures);
  }
  features_ = features;
  return {};
}

Status FrontEnd::SetProtocolFeatures(Payload payload) {
  GANTRY_TRY(const uint64_t features, As<uint64_t>(payload));
  if ((features & ~kProtocolFeatures) != 0) {
    return Fail(Code::kInvalidArgument, "take protocol features {:#x}: only {:#x} were offered",
                features, kProtocolFeatures);
  }
  protocol_features_ = features;
  return {};
}

Status FrontEnd::SetMemory(Payload payload) {
  MemoryTableHead head;
  if (payload.size() < sizeof(head)) {
    return Fail(Code::kInvalidArgument, "read a table of memory: it has {} bytes", payload.size());
  }
  memcpy(&head, payload.data(), sizeof(head));
  payload = payload.subspan(sizeof(head));
  std::array<MemoryRegion, GuestMemory::kMaxRegions> regions;
  if (head.count > regions.size() || payload.size() < head.count * sizeof(MemoryRegion)) {
    return Fail(Code::kInvalidArgument, "read a table of memory: {} regions in {} bytes",
                head.count, payload.size());
  }
  memcpy(regions.data(), payload.data(), head.count * sizeof(MemoryRegion));
  GANTRY_CHECK_OK(device_.memory().Map(std::span(regions).first(head.count), descriptors_));
  return device_.Remap();
}

Result<uint32_t> FrontEnd::QueueIndexOf(uint64_t index) const {
  if (index >= kQueues) {
    return Fail(Code::kInvalidArgument, "find queue {}: there are {}", index, kQueues);
  }
  return static_cast<uint32_t>(index);
}

Status FrontEnd::SetSize(Payload payload) {
  GANTRY_TRY(const auto number, As<QueueNumber>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(number.index));
  queues_[index].layout.size = number.value;
  return {};
}

Status FrontEnd::SetAddresses(Payload payload) {
  GANTRY_TRY(const auto addresses, As<QueueAddresses>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(addresses.index));
  QueueLayout& layout = queues_[index].layout;
  layout.descriptors = addresses.descriptors;
  layout.available = addresses.available;
  layout.used = addresses.used;
  queues_[index].has_addresses = true;
  return StartIfReady(index);
}

Status FrontEnd::SetBase(Payload payload) {
  GANTRY_TRY(const auto number, As<QueueNumber>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(number.index));
  queues_[index].base = static_cast<uint16_t>(number.value);
  return {};
}

/// It is how a queue is stopped.
Status FrontEnd::GetBase(Payload payload) {
  GANTRY_TRY(const auto number, As<QueueNumber>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(number.index));
  StopQueue(index);
  // It goes on with another notification.
  GANTRY_CHECK_OK(SetKick(index, UniqueFd()));
  return Answer(QueueNumber{.index = index, .value = queues_[index].base});
}

Status FrontEnd::SetDescriptor(Request request, Payload payload) {
  GANTRY_TRY(const uint64_t value, As<uint64_t>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(value & kQueueMask));
  UniqueFd descriptor;
  if ((value & kNoDescriptor) == 0) {
    if (descriptors_.size() != 1) {
      return Fail(Code::kInvalidArgument, "take a descriptor of queue {}: {} have come", index,
                  descriptors_.size());
    }
    descriptor = std::move(descriptors_.front());
  }
  if (request == Request::kSetQueueKick) {
    return SetKick(index, std::move(descriptor));
  }
  if (request == Request::kSetQueueCall && IsServed(index)) {
    device_.SetCall(static_cast<QueueIndex>(index), std::move(descriptor));
  }
  return {};
}

Status FrontEnd::SetKick(uint32_t index, UniqueFd kick) {
  Queue& queue = queues_[index];
  if (queue.kick) {
    poller_.Remove(queue.kick.get());
  }
  queue.kick = std::move(kick);
  if (queue.kick && IsServed(index)) {
    const Source source = index == static_cast<uint32_t>(QueueIndex::kToGuest) ? Source::kToGuest
                                                                               : Source::kFromGuest;
    GANTRY_CHECK_OK(poller_.Add(queue.kick.get(), {.source = source, .ready = EPOLLIN | EPOLLET}));
  }
  // Without protocol features a queue is on from its start.
  queue.enabled = queue.enabled || (features_ & kHasProtocolFeatures) == 0;
  return StartIfReady(index);
}

Status FrontEnd::SetEnable(Payload payload) {
  GANTRY_TRY(const auto number, As<QueueNumber>(payload));
  GANTRY_TRY(const uint32_t index, QueueIndexOf(number.index));
  queues_[index].enabled = number.value != 0;
  if (number.value == 0) {
    StopQueue(index);
    return {};
  }
  return StartIfReady(index);
}

Status FrontEnd::StartIfReady(uint32_t index) {
  Queue& queue = queues_[index];
  if (!IsServed(index) || queue.started || !queue.enabled || !queue.kick || !queue.has_addresses) {
    return {};
  }
  GANTRY_CHECK_OK(device_.Start(static_cast<QueueIndex>(index), queue.layout, queue.base,
                                (features_ & kEventIndex) != 0));
  queue.started = true;
  return {};
}

void FrontEnd::StopQueue(uint32_t index) {
  Queue& queue = queues_[index];
  if (queue.started) {
    queue.started = false;
    queue.base = device_.Stop(static_cast<QueueIndex>(index));
  }
}

void FrontEnd::ResetQueues() {
  for (Queue& queue : queues_) {
    if (queue.kick) {
      poller_.Remove(queue.kick.get());
    }
    queue = {};
  }
  device_.SetCall(QueueIndex::kToGuest, UniqueFd());
  device_.SetCall(QueueIndex::kFromGuest, UniqueFd());
  device_.Reset();
}

Status FrontEnd::GetConfig(Payload payload) {
  ConfigHead head;
  if (payload.size() < sizeof(head) || payload.size() > sizeof(head) + kMaxConfig) {
    return Fail(Code::kInvalidArgument, "read a configuration: the request has {} bytes",
                payload.size());
  }
  memcpy(&head, payload.data(), sizeof(head));
  if (head.offset > kConfigBytes || head.size > kConfigBytes - head.offset) {
    return Answer(std::span<const char>());  // So a failure is told here.
  }
  std::array<char, sizeof(head) + kConfigBytes> answer{};
  std::array<char, kConfigBytes> config{};
  memcpy(config.data(), &device_.settings().guest_cid, kConfigBytes);
  memcpy(answer.data(), &head, sizeof(head));
  memcpy(answer.data() + sizeof(head), config.data() + head.offset, head.size);
  return Answer(std::span<const char>(answer).first(sizeof(head) + head.size));
}

Status FrontEnd::Answer(std::span<const char> payload) {
  answered_ = true;
  const MessageHeader header{.request = header_.request,
                             .flags = kVersion | kReply,
                             .size = static_cast<uint32_t>(payload.size())};
  std::array<char, sizeof(header) + kMaxPayload> message{};
  memcpy(message.data(), &header, sizeof(header));
  std::ranges::copy(payload, message.begin() + sizeof(header));
  const size_t size = sizeof(header) + payload.size();
  GANTRY_TRY(const Transfer transfer,
             SendWithFds(socket_.get(), std::span<const char>(message).first(size), {}));
  if (transfer.bytes != size) {
    return Fail(Code::kUnavailable, "answer the front end: it takes no answers");
  }
  return {};
}

}  // namespace gantry::vmm::vsock
