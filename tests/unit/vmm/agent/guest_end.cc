// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/agent/guest_end.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::vmm {

GuestEnd::GuestEnd() {
  auto ends = UnixSocketPair();
  EXPECT_TRUE(ends);
  end_ = std::move(ends->second);
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  AgentEvents events;
  events.exited = [this](const AgentExit& exit) {
    const std::lock_guard lock(mutex_);
    exits_.push_back(exit);
    changed_.notify_all();
  };
  events.out_of_memory = [this](const std::string& container, uint64_t kills) {
    const std::lock_guard lock(mutex_);
    memory_.emplace_back(container, kills);
  };
  events.log = [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  };
  events.gone = [this](const Error& why) {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(gone_) << "told twice";
    gone_ = why.message;
    changed_.notify_all();
  };
  Greeted greeted;
  greeted.socket = std::move(ends->first);
  client_ = std::make_unique<AgentClient>("pod-7", std::move(greeted), std::move(events));
  reader_ = std::thread([this] {
    for (;;) {
      std::array<pollfd, 2> two = {{{.fd = client_->fd(), .events = POLLIN, .revents = 0},
                                    {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
      ::poll(two.data(), two.size(), -1);
      if (two[1].revents != 0 || !client_->OnReadable()) {
        return;
      }
    }
  });
}

GuestEnd::~GuestEnd() {
  const uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  reader_.join();
}

bool GuestEnd::Say(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd one{.fd = end_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&one, 1, -1);
    const ssize_t sent = ::send(end_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool GuestEnd::SayFrame(const protocol::Envelope& envelope) {
  return Say(protocol::Framed(EncodeProto(envelope)));
}

std::optional<protocol::Envelope> GuestEnd::Hear() {
  std::array<char, 65536> part{};
  for (;;) {
    auto frame = frames_.Next();
    if (frame && *frame) {
      return *DecodeProto<protocol::Envelope>(**frame);
    }
    pollfd one{.fd = end_.get(), .events = POLLIN, .revents = 0};
    ::poll(&one, 1, -1);
    const ssize_t got = ::recv(end_.get(), part.data(), part.size(), 0);
    if (got <= 0) {
      return std::nullopt;
    }
    frames_.Feed({part.data(), static_cast<size_t>(got)});
  }
}

void GuestEnd::Answer(const std::string& body) {
  const auto asked = Hear();
  ASSERT_TRUE(asked);
  SayFrame({.call = asked->call, .kind = asked->kind, .body = body, .failure = {}});
}

std::vector<AgentExit> GuestEnd::WaitForExits(size_t count) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return exits_.size() >= count; }));
  return exits_;
}

std::string GuestEnd::WaitForGone() {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_until(lock, Soon(), [&] { return gone_.has_value(); }));
  return gone_.value_or("");
}

std::vector<std::string> GuestEnd::lines() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

std::vector<std::pair<std::string, uint64_t>> GuestEnd::memory() {
  const std::lock_guard lock(mutex_);
  return memory_;
}

protocol::Envelope EventOf(protocol::Kind kind, std::string body) {
  return {.call = 0, .kind = static_cast<uint32_t>(kind), .body = std::move(body), .failure = {}};
}

}  // namespace gantry::vmm
