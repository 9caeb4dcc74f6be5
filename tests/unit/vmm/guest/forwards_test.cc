// SPDX-License-Identifier: Apache-2.0
//
// Ports of the guest's that its host forwards.
#include "plugins/vmm/guest/forwards.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/vmm/protocol/frames.h"
#include "tests/unit/vmm/guest/host.h"

namespace gantry::vmm {
namespace {

/// A server on a loopback address, and its port.
std::pair<UniqueFd, uint16_t> ServerOn(const char* ip) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  const bool is_v6 = ::inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1;
  ::inet_pton(AF_INET, ip, &v4.sin_addr);
  auto* const address = is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);
  UniqueFd listener(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || ::bind(listener.get(), address, size) != 0 ||
      ::listen(listener.get(), 16) != 0 || ::getsockname(listener.get(), address, &size) != 0) {
    return {};
  }
  return {std::move(listener), ntohs(is_v6 ? v6.sin6_port : v4.sin_port)};
}

UniqueFd Accepted(const UniqueFd& listener) {
  pollfd one{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&one, 1, 60'000), 1);
  return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

std::string ReadToEnd(const UniqueFd& socket) {
  std::string text;
  for (ssize_t got = 1; got > 0;) {
    std::string part(4096, '\0');
    got = ::recv(socket.get(), part.data(), part.size(), 0);
    text.append(part, 0, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return text;
}

class GuestForwards : public GuestTest {
 protected:
  Result<UniqueFd> Forward(uint32_t port) {
    const std::string token = host_->Token();
    GANTRY_CHECK_OK(host_->client().Call(protocol::Forward{.port = port, .token = token}, Soon()));
    return host_->Stream(token);
  }
};

TEST_F(GuestForwards, CarriesBytesAndEachEnd) {
  const auto [listener, port] = ServerOn("127.0.0.1");
  const auto stream = Forward(port);
  ASSERT_TRUE(stream) << stream.error().message;
  const UniqueFd server = Accepted(listener);
  EXPECT_EQ(ReadUntil(*stream, std::string(1, '\0')), std::string(1, '\0'));
  WriteStream(*stream, "question");
  EndStream(*stream);
  EXPECT_EQ(ReadToEnd(server), "question");
  ASSERT_EQ(::send(server.get(), "answer", 6, MSG_NOSIGNAL), 6);
  ASSERT_EQ(::shutdown(server.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadStream(*stream), "answer");
}

TEST_F(GuestForwards, TheServerMayEndFirst) {
  const auto [listener, port] = ServerOn("127.0.0.1");
  const auto stream = Forward(port);
  ASSERT_TRUE(stream) << stream.error().message;
  const UniqueFd server = Accepted(listener);
  ASSERT_EQ(::shutdown(server.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadStream(*stream), std::string(1, '\0'));
  WriteStream(*stream, "late");
  EndStream(*stream);
  EXPECT_EQ(ReadToEnd(server), "late");
}

TEST_F(GuestForwards, ReachesAServerOfTheOtherFamily) {
  const auto [listener, port] = ServerOn("::1");
  if (!listener) {
    GTEST_SKIP() << "there is no IPv6 here";
  }
  const auto stream = Forward(port);
  ASSERT_TRUE(stream) << stream.error().message;
  const UniqueFd server = Accepted(listener);
  EXPECT_EQ(ReadUntil(*stream, std::string(1, '\0')), std::string(1, '\0'));
}

TEST_F(GuestForwards, SaysWhyThereIsNoServer) {
  uint16_t port = 0;
  {
    const auto [listener, was] = ServerOn("127.0.0.1");
    port = was;
  }
  const auto stream = Forward(port);
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ(ReadStream(*stream), std::string(1, ECONNREFUSED));
}

TEST_F(GuestForwards, RefusesWhatIsNoPort) {
  for (const uint32_t port : {0U, 65536U}) {
    EXPECT_EQ(Forward(port).error().code, Code::kInvalidArgument) << port;
  }
}

TEST_F(GuestForwards, ThereAreSoManyAndThoseThatHaveEndedDoNotCount) {
  const auto [listener, port] = ServerOn("127.0.0.1");
  std::vector<UniqueFd> streams;
  std::vector<UniqueFd> servers;
  for (size_t i = 0; i < guest::Forwards::kMost; ++i) {
    auto stream = Forward(port);
    ASSERT_TRUE(stream) << stream.error().message;
    servers.push_back(Accepted(listener));
    streams.push_back(std::move(*stream));
  }
  EXPECT_EQ(Forward(port).error().code, Code::kResourceExhausted);
  streams.clear();
  // The agent sees that they have ended when it does.
  for (const UniqueFd& server : servers) {
    EXPECT_EQ(ReadToEnd(server), "");
  }
  EXPECT_TRUE(Forward(port));
}

/// One whose client leaves before its server has taken it is not kept until that has.
TEST_F(GuestForwards, ThoseThatWaitForTheirServerEndWithTheirClient) {
  // The kernel drops what is beyond a full queue, and the client tries again for long.
  const auto [listener, port] = ServerOn("127.0.0.1");
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto first = Forward(port);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(ReadUntil(*first, std::string(1, '\0')), std::string(1, '\0'));
  for (size_t i = 0; i < 2 * guest::Forwards::kMost; ++i) {
    const auto stream = Forward(port);
    ASSERT_TRUE(stream) << i << ": " << stream.error().message;
  }
}

}  // namespace
}  // namespace gantry::vmm
