// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/forwarded.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

namespace gantry::e2e {
namespace {

constexpr time_t kSecondsOfAWait = 30;

}  // namespace

std::string EchoScript(uint16_t port) {
  return "nc -ll -p " + std::to_string(port) +
         " -e sh -c 'while read x; do echo got $x; done; echo end'";
}

UniqueFd OpenNetns(pid_t pid) {
  return UniqueFd(open(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
}

UniqueFd ConnectIn(const UniqueFd& netns, uint16_t port) {
  UniqueFd made;
  // A socket stays in the namespace in which it was made.
  std::thread([&] {
    if (setns(netns.get(), CLONE_NEWNET) == 0) {
      made.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
  }).join();
  const timeval limit = {kSecondsOfAWait, 0};
  setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
      << errno;
  return made;
}

void Say(const UniqueFd& client, const std::string& text) {
  EXPECT_EQ(send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string Hear(const UniqueFd& client, size_t size) {
  std::string text(size, '\0');
  const ssize_t n = recv(client.get(), text.data(), text.size(), MSG_WAITALL);
  text.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return text;
}

std::pair<std::string, int> HearAll(const UniqueFd& client) {
  std::string text;
  std::array<char, 4096> part{};
  ssize_t n = 0;
  while ((n = recv(client.get(), part.data(), part.size(), 0)) > 0) {
    text.append(part.data(), static_cast<size_t>(n));
  }
  return {text, n < 0 ? errno : 0};
}

void ExpectAnswer(const UniqueFd& client, const std::string& word) {
  Say(client, word + "\n");
  EXPECT_EQ(Hear(client, word.size() + 5), "got " + word + "\n");
}

}  // namespace gantry::e2e
