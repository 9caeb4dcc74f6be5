// SPDX-License-Identifier: Apache-2.0
//
// Network namespaces of the kernel's; `ip` sets them up.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry::net {

inline UniqueFd NewNetns() {
  UniqueFd netns;
  std::thread([&netns] {
    if (unshare(CLONE_NEWNET) == 0) {
      netns.reset(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
  }).join();
  return netns;
}

/// What the shell's command writes, in the namespace.
inline std::string RunIn(const UniqueFd& netns, const std::string& command) {
  std::string output;
  std::thread([&] {
    ASSERT_EQ(setns(netns.get(), CLONE_NEWNET), 0);
    FILE* const pipe = popen(("set -e\n" + command).c_str(), "re");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 4096> part{};
    for (size_t got = 1; got > 0; output.append(part.data(), got)) {
      got = fread(part.data(), 1, part.size(), pipe);
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
  }).join();
  return output;
}

/// A namespace as a pod has one, and another one at the far ends of its interfaces.
class NetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make network namespaces";
    }
    pod_ = NewNetns();
    outside_ = NewNetns();
    ASSERT_TRUE(pod_ && outside_) << "no network namespaces here";
  }

  /// An interface without a link-local address of its own, which is not the same each time.
  void AddInterface(const std::string& name, const std::string& mac, uint32_t mtu = 1500) {
    RunIn(pod_,
          Format("ip link add name {0} address {1} mtu {2} type veth peer name {0} netns {3}\n"
                 "ip link set {0} addrgenmode none\n"
                 "ip link set {0} up\n",
                 name, mac, mtu, Path(outside_)));
    RunIn(outside_, Format("ip link set {0} up\n", name));
  }

  /// Two interfaces with something of everything, a third one that is down.
  void AddPodNetwork() {
    AddInterface("eth0", "02:00:00:00:00:01", 1450);
    AddInterface("eth1", "02:00:00:00:00:02");
    AddInterface("eth2", "02:00:00:00:00:03");
    RunIn(pod_,
          "ip link set lo up\n"
          "ip addr add 10.1.0.2/24 dev eth0\n"
          "ip addr add 10.1.0.3/24 dev eth0\n"
          "ip addr add 10.9.0.2 peer 10.9.0.1 dev eth0\n"
          "ip addr add 2001:db8:1::2/64 dev eth0 nodad\n"
          "ip addr add fe80::1:2/64 dev eth0 nodad\n"
          "ip addr add 10.2.0.2/16 metric 50 dev eth1\n"
          "ip addr add 10.3.0.2/16 dev eth2\n"
          "ip link set eth2 down\n"
          "ip route add 169.254.1.1 dev eth0 scope link\n"
          "ip route add default via 169.254.1.1 dev eth0\n"
          "ip route add default via 10.2.0.1 dev eth1 metric 100\n"
          "ip route add 10.96.0.0/12 via 10.2.0.1 mtu 1400\n"
          "ip route add blackhole 10.97.0.0/16\n"
          "ip route add 10.98.0.0/16 dev eth1 table 100\n"
          "ip route add 10.99.0.0/16 nexthop via 10.1.0.1 nexthop via 10.2.0.1\n"
          "ip route add default via fe80::1 dev eth0\n"
          "ip neigh add 169.254.1.1 lladdr 02:00:00:00:00:aa dev eth0 nud permanent\n"
          "ip neigh add 10.1.0.7 lladdr 02:00:00:00:00:bb dev eth0 nud reachable\n"
          // The kernel adds these a moment later.
          "for i in $(seq 500); do\n"
          "  [ \"$(ip -6 route show table local dev eth0 | grep -c ^local)\" != 2 ] || break\n"
          "done\n");
  }

  /// All that may change, as `ip` shows it.
  std::string State() {
    return RunIn(pod_,
                 "ip -j addr; ip -j -4 route show table all; ip -j -6 route show table all\n"
                 "ip -j neigh show nud permanent\n");
  }

  /// As soon as it is that; where it does not become that, as it is.
  std::string StateLike(const std::string& expected) {
    constexpr int kTries = 500;
    std::string state = State();
    for (int i = 0; i < kTries && state != expected; ++i) {
      state = State();
    }
    return state;
  }

  /// For a process that is not this one.
  static std::string Path(const UniqueFd& netns) {
    return Format("/proc/{}/fd/{}", getpid(), netns.get());
  }

  UniqueFd pod_;
  UniqueFd outside_;
};

}  // namespace gantry::net
