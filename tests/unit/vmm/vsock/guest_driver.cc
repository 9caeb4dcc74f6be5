// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/vsock/guest_driver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::vmm::vsock {
namespace {

constexpr uint16_t kFlagNext = 1;
constexpr uint16_t kFlagWrite = 2;
constexpr size_t kDescriptorSize = 16;

/// A test without it shows nothing.
void Demand(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

GuestDriver::GuestDriver(UniqueFd socket, DriverSettings settings, std::function<void()> turn)
    : socket_(std::move(socket)), settings_(settings), turn_(std::move(turn)) {
  auto file = CreateMemfd("guest");
  Demand(file.has_value() && ftruncate(file->get(), kMemoryBytes) == 0);
  file_ = std::move(*file);
  void* const at = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  Demand(at != MAP_FAILED);
  memory_ = static_cast<std::byte*>(at);
  for (int i = 0; i < 2; ++i) {
    kicks_[i].reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    calls_[i].reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  Restart();
}

void GuestDriver::Restart() {
  memset(memory_, 0, kReceiveBuffers);
  sent_ = 0;
  offered_ = 0;
  received_ = 0;
  kept_.clear();
  for (size_t buffer = 0; buffer < settings_.buffers; ++buffer) {
    GiveBuffer(static_cast<uint16_t>(buffer));
  }
}

GuestDriver::~GuestDriver() { munmap(memory_, kMemoryBytes); }

bool GuestDriver::Bring() {
  return Introduce() && ShareMemory() && StartQueue(0, 0) && StartQueue(1, 0) && Enable(0, true) &&
         Enable(1, true);
}

bool GuestDriver::Introduce() {
  const uint64_t features = settings_.event_index ? kFeatures : kFeatures & ~kEventIndex;
  return Ask(Request::kGetFeatures, {}) && Ask(Request::kGetProtocolFeatures, {}) &&
         Say(static_cast<uint32_t>(Request::kSetProtocolFeatures), kVersion,
             Bytes(kProtocolFeatures), {}) &&
         Order(Request::kSetOwner, {}) && Order(Request::kSetFeatures, Bytes(features));
}

bool GuestDriver::ShareMemory() {
  struct {
    MemoryTableHead head{.count = 1};
    MemoryRegion region{
        .guest_address = kGuestBase, .size = kMemoryBytes, .front_end_address = kFrontEndBase};
  } table;

  const int file = file_.get();
  return Order(Request::kSetMemoryTable, Bytes(table), std::span(&file, 1));
}

bool GuestDriver::StartQueue(uint32_t index, uint16_t base) {
  const size_t ring = index == 0 ? kReceiveRing : kSendRing;
  const QueueAddresses addresses{.index = index,
                                 .descriptors = kFrontEndBase + ring,
                                 .used = kFrontEndBase + UsedOf(ring),
                                 .available = kFrontEndBase + AvailableOf(ring)};
  const int kick = kicks_[index].get();
  const int call = calls_[index].get();
  return Order(Request::kSetQueueSize, Bytes(QueueNumber{index, kQueueSize})) &&
         Order(Request::kSetQueueBase, Bytes(QueueNumber{index, base})) &&
         Order(Request::kSetQueueAddresses, Bytes(addresses)) &&
         Order(Request::kSetQueueCall, Bytes(uint64_t{index}), std::span(&call, 1)) &&
         Order(Request::kSetQueueKick, Bytes(uint64_t{index}), std::span(&kick, 1));
}

bool GuestDriver::Enable(uint32_t index, bool enabled) {
  return Order(Request::kSetQueueEnable, Bytes(QueueNumber{index, enabled ? 1U : 0U}));
}

std::optional<uint16_t> GuestDriver::StopQueue(uint32_t index) {
  const auto answer = Ask(Request::kGetQueueBase, Bytes(QueueNumber{index, 0}));
  if (!answer || answer->size() != sizeof(QueueNumber)) {
    return std::nullopt;
  }
  QueueNumber number;
  memcpy(&number, answer->data(), sizeof(number));
  return static_cast<uint16_t>(number.value);
}

bool GuestDriver::Say(uint32_t request, uint32_t flags, std::span<const char> payload,
                      std::span<const int> descriptors) {
  const MessageHeader header{request, flags, static_cast<uint32_t>(payload.size())};
  std::string message(reinterpret_cast<const char*>(&header), sizeof(header));
  message.append(payload.begin(), payload.end());
  const auto sent = SendWithFds(socket_.get(), message, descriptors);
  return sent && sent->bytes == message.size();
}

std::optional<std::string> GuestDriver::Ask(Request request, std::span<const char> payload) {
  if (!Say(static_cast<uint32_t>(request), kVersion, payload, {})) {
    return std::nullopt;
  }
  return Hear();
}

bool GuestDriver::Order(Request request, std::span<const char> payload,
                        std::span<const int> descriptors) {
  if (!Say(static_cast<uint32_t>(request), kVersion | kNeedsReply, payload, descriptors)) {
    return false;
  }
  const auto answer = Hear();
  return answer == std::string(sizeof(uint64_t), '\0');
}

/// Of a device that is a program of its own: its answer is waited for.
std::optional<std::string> GuestDriver::Hear() {
  std::string message;
  size_t wanted = sizeof(MessageHeader);
  constexpr int kMostTurns = 10000;
  for (int turns = 0; message.size() < wanted && turns < kMostTurns; ++turns) {
    turn_();
    std::array<char, sizeof(MessageHeader) + kMaxPayload> bytes{};
    std::vector<UniqueFd> none;
    const auto got =
        RecvWithFds(socket_.get(), std::span(bytes).first(wanted - message.size()), none);
    if (!got || got->end) {
      return std::nullopt;
    }
    message.append(bytes.data(), got->bytes);
    if (message.size() == sizeof(MessageHeader)) {
      MessageHeader header;
      memcpy(&header, message.data(), sizeof(header));
      wanted = sizeof(header) + std::min<size_t>(header.size, kMaxPayload);
    }
  }
  if (message.size() < wanted) {
    return std::nullopt;
  }
  return message.substr(sizeof(MessageHeader));
}

bool GuestDriver::HasLeft() {
  pollfd one{socket_.get(), POLLIN, 0};
  poll(&one, 1, 0);
  return (one.revents & (POLLHUP | POLLERR)) != 0;
}

uint16_t GuestDriver::Load(size_t offset) {
  return std::atomic_ref<uint16_t>(Word(offset)).load(std::memory_order_seq_cst);
}

void GuestDriver::Store(size_t offset, uint16_t value) {
  std::atomic_ref<uint16_t>(Word(offset)).store(value, std::memory_order_seq_cst);
}

void GuestDriver::WriteDescriptor(size_t ring, uint16_t index, uint64_t address, uint32_t length,
                                  uint16_t flags, uint16_t next) {
  std::byte* const at = At(ring + index * kDescriptorSize);
  memcpy(at, &address, sizeof(address));
  memcpy(at + 8, &length, sizeof(length));
  memcpy(at + 12, &flags, sizeof(flags));
  memcpy(at + 14, &next, sizeof(next));
}

void GuestDriver::Offer(size_t ring, uint16_t head) {
  const uint16_t index = Load(AvailableOf(ring) + 2);
  Word(AvailableOf(ring) + 4 + 2 * (index % kQueueSize)) = head;
  Store(AvailableOf(ring) + 2, static_cast<uint16_t>(index + 1));
  sent_ = static_cast<uint16_t>(sent_ + (ring == kSendRing ? 1 : 0));
}

bool GuestDriver::WantsKick(size_t ring, uint16_t fresh, uint16_t old) {
  if (!settings_.event_index) {
    return (Load(UsedOf(ring)) & 1) == 0;
  }
  const uint16_t event = Load(UsedOf(ring) + 4 + 8 * kQueueSize);
  return static_cast<uint16_t>(fresh - event - 1) < static_cast<uint16_t>(fresh - old);
}

void GuestDriver::Kick(uint32_t index) { eventfd_write(kicks_[index].get(), 1); }

void GuestDriver::Send(const PacketHeader& header, std::string_view data) {
  // Each packet has two descriptors, so that half of them is the most at a time.
  constexpr uint16_t kSlots = kQueueSize / 2;
  constexpr int kMostTurns = 100000;
  for (int turns = 0; static_cast<uint16_t>(sent_ - sent_used()) >= kSlots; ++turns) {
    Demand(turns < kMostTurns);
    Kick(1);
    turn_();
  }
  const auto slot = static_cast<uint16_t>(sent_ % kSlots);
  const size_t at = kSendBuffers + slot * kSendStride;
  memcpy(At(at), &header, sizeof(header));
  if (!data.empty()) {
    memcpy(At(at + sizeof(header)), data.data(), data.size());
  }
  const auto first = static_cast<uint16_t>(2 * slot);
  const auto second = static_cast<uint16_t>(first + 1);
  WriteDescriptor(kSendRing, first, kGuestBase + at, sizeof(header),
                  data.empty() ? uint16_t{0} : kFlagNext, second);
  WriteDescriptor(kSendRing, second, kGuestBase + at + sizeof(header),
                  static_cast<uint32_t>(data.size()), 0, 0);
  const uint16_t old = sent_;
  Offer(kSendRing, first);
  if (WantsKick(kSendRing, sent_, old)) {
    Kick(1);
  }
}

uint16_t GuestDriver::sent_used() { return Load(UsedOf(kSendRing) + 2); }

void GuestDriver::GiveBuffer(uint16_t buffer) {
  const uint64_t at = kGuestBase + kReceiveBuffers + buffer * kReceiveStride;
  auto head = buffer;
  if (settings_.header_apart) {
    head = static_cast<uint16_t>(2 * buffer % kQueueSize);
    const auto second = static_cast<uint16_t>(head + 1);
    WriteDescriptor(kReceiveRing, head, at, kHeaderBytes, kFlagWrite | kFlagNext, second);
    WriteDescriptor(kReceiveRing, second, at + kHeaderBytes, kData, kFlagWrite, 0);
  } else {
    WriteDescriptor(kReceiveRing, head, at, kHeaderBytes + kData, kFlagWrite, 0);
  }
  const uint16_t old = offered_++;
  Offer(kReceiveRing, head);
  if (WantsKick(kReceiveRing, offered_, old)) {
    Kick(0);
  }
}

std::optional<Packet> GuestDriver::Receive() {
  if (Load(UsedOf(kReceiveRing) + 2) == received_) {
    return std::nullopt;
  }
  const std::byte* const used = At(UsedOf(kReceiveRing) + 4 + 8 * (received_ % kQueueSize));
  uint32_t head = 0;
  uint32_t size = 0;
  memcpy(&head, used, sizeof(head));
  memcpy(&size, used + 4, sizeof(size));
  Demand(head < kQueueSize && size >= kHeaderBytes && size <= kHeaderBytes + kData);
  ++received_;
  AskForInterrupt(kReceiveRing, received_);
  const auto buffer = static_cast<uint16_t>(settings_.header_apart ? head / 2 : head);
  const std::byte* const at = At(kReceiveBuffers + buffer * kReceiveStride);
  Packet packet;
  memcpy(&packet.header, at, kHeaderBytes);
  packet.data.assign(reinterpret_cast<const char*>(at + kHeaderBytes), size - kHeaderBytes);
  Demand(packet.header.length == packet.data.size());
  if (keeps_buffers_) {
    kept_.push_back(buffer);
  } else {
    GiveBuffer(buffer);
  }
  return packet;
}

void GuestDriver::GiveKept() {
  for (const uint16_t buffer : std::exchange(kept_, {})) {
    GiveBuffer(buffer);
  }
}

uint64_t GuestDriver::TakeInterrupts(uint32_t index) {
  eventfd_t count = 0;
  return eventfd_read(calls_[index].get(), &count) == 0 ? count : 0;
}

void GuestDriver::AskForInterrupt(size_t ring, uint16_t after) {
  Store(AvailableOf(ring) + 4 + 2 * kQueueSize, after);
}

}  // namespace gantry::vmm::vsock
