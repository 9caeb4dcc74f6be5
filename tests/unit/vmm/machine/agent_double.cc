// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/machine/agent_double.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/greeting.h"

namespace gantry::vmm {
namespace {

constexpr std::chrono::seconds kLong{60};
constexpr int kPauseMs = 5;

bool SendFrame(int socket, const protocol::Envelope& envelope) {
  const std::string frame = protocol::Framed(EncodeProto(envelope));
  return ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(frame.size());
}

protocol::Envelope Of(uint64_t call, uint32_t kind, std::string body) {
  return {.call = call, .kind = kind, .body = std::move(body), .failure = {}};
}

}  // namespace

AgentDouble::AgentDouble(std::string path, uint32_t versions)
    : path_(std::move(path)),
      versions_(versions),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Run(); }) {}

AgentDouble::~AgentDouble() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void AgentDouble::Run() {
  for (;;) {
    pollfd stop{.fd = stop_.get(), .events = POLLIN, .revents = 0};
    auto dialled = ConnectUnix(path_);
    if (!dialled) {
      // Nobody listens yet: a guest tries again, too.
      if (::poll(&stop, 1, kPauseMs) != 0) {
        return;
      }
      continue;
    }
    const int socket = dialled->get();
    {
      const std::lock_guard lock(mutex_);
      socket_ = std::move(*dialled);
    }
    protocol::FrameReader frames(protocol::kMaxFromHost);
    if (Greet(socket, frames)) {
      Serve(socket, frames);
    }
    bool again = false;
    {
      const std::lock_guard lock(mutex_);
      socket_.reset();
      again = again_;
    }
    if (!again || ::poll(&stop, 1, kPauseMs) != 0) {
      return;
    }
  }
}

std::optional<protocol::Envelope> AgentDouble::Next(int socket, protocol::FrameReader& frames) {
  std::array<char, 65536> part{};
  for (;;) {
    auto frame = frames.Next();
    if (frame && *frame) {
      return *DecodeProto<protocol::Envelope>(**frame);
    }
    std::array<pollfd, 2> two = {{{.fd = socket, .events = POLLIN, .revents = 0},
                                  {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(two.data(), two.size(), -1);
    const ssize_t got = two[1].revents != 0 ? 0 : ::recv(socket, part.data(), part.size(), 0);
    if (got <= 0) {
      return std::nullopt;
    }
    frames.Feed({part.data(), static_cast<size_t>(got)});
  }
}

bool AgentDouble::Greet(int socket, protocol::FrameReader& frames) {
  protocol::Hello hello{.first_version = 1,
                        .last_version = 1,
                        .agent = "agent-double 1",
                        .kernel = "6.1-test",
                        .boot_id = "boot"};
  if (versions_ != 1) {
    hello.first_version = hello.last_version = versions_;
  }
  {
    const std::lock_guard lock(mutex_);
    hello.session = session_;
  }
  SendFrame(socket, Of(0, static_cast<uint32_t>(protocol::Kind::kHello), EncodeProto(hello)));
  const auto welcome = Next(socket, frames);
  if (!welcome) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  session_ = DecodeProto<protocol::Welcome>(welcome->body)->session;
  ++welcomes_;
  changed_.notify_all();
  return true;
}

void AgentDouble::Serve(int socket, protocol::FrameReader& frames) {
  while (const auto request = Next(socket, frames)) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(*request);
      changed_.notify_all();
    }
    if (!silent_) {
      SendFrame(socket, Of(request->call, request->kind, ""));
    }
  }
}

std::optional<protocol::Envelope> AgentDouble::Asked(protocol::Kind kind) {
  std::unique_lock lock(mutex_);
  std::optional<protocol::Envelope> found;
  changed_.wait_for(lock, kLong, [&] {
    const auto one =
        std::ranges::find(asked_, static_cast<uint32_t>(kind), &protocol::Envelope::kind);
    if (one != asked_.end()) {
      found = *one;
    }
    return found.has_value();
  });
  return found;
}

bool AgentDouble::Tell(protocol::Kind kind, std::string body) {
  const std::lock_guard lock(mutex_);
  return socket_ && SendFrame(socket_.get(), Of(0, static_cast<uint32_t>(kind), std::move(body)));
}

bool AgentDouble::WaitForWelcomes(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kLong, [&] { return welcomes_ >= count; });
}

void AgentDouble::Hangup(bool again) {
  const std::lock_guard lock(mutex_);
  again_ = again;
  if (socket_) {
    ::shutdown(socket_.get(), SHUT_RDWR);
  }
}

}  // namespace gantry::vmm
