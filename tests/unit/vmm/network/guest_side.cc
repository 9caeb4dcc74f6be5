// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/network/guest_side.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/net/netlink.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/tap.h>

#include "plugins/vmm/guest/network.h"
#include "tests/unit/toolkit/net/network_fixture.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMuch = size_t{1} << 20;

net::Netns NetnsOf(const UniqueFd& fd) {
  return net::Netns::Open(Format("/proc/self/fd/{}", fd.get())).value();
}

/// All that has come, to the other one. A frame that finds no room is lost, as frames are.
void Pass(const UniqueFd& from, const UniqueFd& to) {
  std::array<char, 1 << 17> frame{};
  for (ssize_t size = 0; (size = ::read(from.get(), frame.data(), frame.size())) > 0;) {
    if (::write(to.get(), frame.data(), static_cast<size_t>(size)) < 0 && errno == EBADFD) {
      return;
    }
  }
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  explicit Address(const std::string& text) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
    const bool is_v4 = ::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1;
    if (!is_v4) {
      ::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr);
    }
    storage.ss_family = is_v4 ? AF_INET : AF_INET6;
    size = is_v4 ? sizeof(*v4) : sizeof(*v6);
  }

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Status SendAll(const UniqueFd& socket, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t sent = ::send(socket.get(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent < 0) {
      return FailErrno(errno, "send");
    }
    at += static_cast<size_t>(sent);
  }
  ::shutdown(socket.get(), SHUT_WR);
  return {};
}

Status ExpectAll(const UniqueFd& socket, const std::string& text) {
  std::string got(text.size() + 1, '\0');
  size_t at = 0;
  for (ssize_t part = 1; part > 0 && at < got.size(); at += static_cast<size_t>(part)) {
    part = ::recv(socket.get(), got.data() + at, got.size() - at, 0);
    if (part < 0) {
      return FailErrno(errno, "receive, after {} bytes", at);
    }
  }
  got.resize(at);
  return got == text ? Status() : Fail(Code::kDataLoss, "{} other bytes have come", at);
}

}  // namespace

GuestSide::GuestSide(std::vector<Nic> nics) : netns_(net::NewNetns()) {
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  const net::Netns netns = NetnsOf(netns_);
  net::RouteSocket socket = net::RouteSocket::In(netns).value();
  for (Nic& nic : nics) {
    const std::string name = Format("other{}", cables_.size());
    auto tap = net::MakeTap(netns, socket, {.name = name},
                            std::chrono::steady_clock::now() + std::chrono::seconds(10));
    EXPECT_TRUE(tap) << tap.error().message;
    net::RunIn(netns_, Format("ip link set {} down address {}", name, nic.mac));
    cables_.push_back(std::make_unique<Cable>(std::move(nic.tap), std::move(tap->fd)));
    threads_.emplace_back([this, cable = cables_.back().get()] { Carry(*cable); });
  }
}

GuestSide::~GuestSide() {
  const uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void GuestSide::Carry(const Cable& cable) const {
  for (;;) {
    std::array<pollfd, 3> all = {{{.fd = cable.nic.get(), .events = POLLIN, .revents = 0},
                                  {.fd = cable.interface.get(), .events = POLLIN, .revents = 0},
                                  {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    ::poll(all.data(), all.size(), -1);
    if (all[2].revents != 0) {
      return;
    }
    Pass(cable.nic, cable.interface);
    Pass(cable.interface, cable.nic);
  }
}

Status GuestSide::SetUp(const protocol::SetUp& request) const {
  Status done;
  std::thread([&] {
    done = ::setns(netns_.get(), CLONE_NEWNET) == 0 ? guest::SetUpNetwork(request)
                                                    : FailErrno(errno, "enter the guest");
  }).join();
  return done;
}

Status Talk(const UniqueFd& from, const UniqueFd& to, const std::string& address) {
  Address at(address);
  const int family = at.storage.ss_family;
  const UniqueFd listener =
      std::move(NetnsOf(to).Sockets(family, SOCK_STREAM, 0, 1).value().front());
  if (::bind(listener.get(), at.get(), at.size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), at.get(), &at.size) != 0) {
    return FailErrno(errno, "listen at {}", address);
  }
  const UniqueFd client =
      std::move(NetnsOf(from).Sockets(family, SOCK_STREAM, 0, 1).value().front());
  if (::connect(client.get(), at.get(), at.size) != 0) {
    return FailErrno(errno, "connect to {}", address);
  }
  const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::string there(kMuch, 'x');
  for (size_t i = 0; i < kMuch; i += 101) {
    there[i] = static_cast<char>(i / 101);
  }
  Status sent;
  std::thread sender([&] { sent = SendAll(client, there); });
  const Status got = ExpectAll(server, there);
  sender.join();
  GANTRY_CHECK_OK(sent);
  GANTRY_CHECK_OK(got);
  GANTRY_CHECK_OK(SendAll(server, "answer"));
  return ExpectAll(client, "answer");
}

}  // namespace gantry::vmm
