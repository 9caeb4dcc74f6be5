// SPDX-License-Identifier: Apache-2.0
//
// Taps, and what leads a pod's frames to one and back: in namespaces of the kernel's.
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/net/link.h>
#include <gantry/toolkit/net/message.h>
#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/net/redirect.h>
#include <gantry/toolkit/net/tap.h>

#include "tests/unit/toolkit/net/network_fixture.h"

namespace gantry::net {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kTapHeaderBytes = 10;
constexpr uint16_t kTestProtocol = 0x88b5;

Deadline InTenSeconds() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

/// A frame to everybody, of a kind that nobody else sends.
std::string FrameWith(const std::string& text) {
  return std::string("\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x88\xb5", 14) + text +
         std::string(50, 'x');
}

class RedirectTest : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    AddInterface("eth0", "02:00:00:00:00:01", 1450);
    netns_.emplace(Netns::Open(Path(pod_)).value());
    socket_.emplace(RouteSocket::In(*netns_).value());
    eth0_ = LinkOf("eth0").index;
  }

  LinkInfo LinkOf(const std::string& name) {
    const auto links = ReadLinks(*socket_, InTenSeconds()).value();
    const auto found = std::ranges::find(links, name, &LinkInfo::name);
    return found == links.end() ? LinkInfo() : *found;
  }

  Tap NewTap(const std::string& name = "tap0", std::optional<uid_t> owner = std::nullopt) {
    auto tap =
        MakeTap(*netns_, *socket_, {.name = name, .mtu = 1450, .owner = owner}, InTenSeconds());
    EXPECT_TRUE(tap) << tap.error().message;
    return tap ? std::move(*tap) : Tap();
  }

  void Join(int32_t tap) {
    for (const auto& [from, to] : {std::pair(eth0_, tap), std::pair(tap, eth0_)}) {
      const Status done = Redirect(*socket_, from, to, InTenSeconds());
      ASSERT_TRUE(done) << done.error().message;
    }
  }

  /// Of frames of the test's own, at the far end of eth0.
  UniqueFd FarEnd() {
    UniqueFd far = std::move(Netns::Open(Path(outside_))
                                 ->Sockets(AF_PACKET, SOCK_RAW, htons(kTestProtocol), 1)
                                 ->front());
    sockaddr_ll name{};
    name.sll_family = AF_PACKET;
    name.sll_protocol = htons(kTestProtocol);
    name.sll_ifindex = std::stoi(RunIn(outside_, "ip -o link show eth0 | cut -d: -f1"));
    EXPECT_EQ(bind(far.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    return far;
  }

  std::string Filters(const std::string& interface) {
    return RunIn(pod_, Format("tc qdisc show dev {0}; tc filter show dev {0} ingress", interface));
  }

  std::optional<Netns> netns_;
  std::optional<RouteSocket> socket_;
  int32_t eth0_ = 0;
};

/// The next frame of the test's that comes; others are let go.
std::string NextFrame(const UniqueFd& from, size_t header) {
  while (true) {
    pollfd readable{from.get(), POLLIN, 0};
    if (poll(&readable, 1, 10'000) != 1) {
      return "nothing";
    }
    std::string got(4096, '\0');
    const ssize_t size = read(from.get(), got.data(), got.size());
    got.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (got.size() > header + ETH_HLEN && got.substr(header + 12, 2) == "\x88\xb5") {
      return got.substr(header);
    }
  }
}

TEST_F(RedirectTest, LeadsFramesBothWays) {
  const Tap tap = NewTap();
  Join(tap.index);
  const UniqueFd far = FarEnd();
  const std::string in = FrameWith("to the guest");
  ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
  EXPECT_EQ(NextFrame(tap.fd, kTapHeaderBytes), in);
  const std::string out = FrameWith("from the guest");
  const std::string sent = std::string(kTapHeaderBytes, '\0') + out;
  ASSERT_EQ(write(tap.fd.get(), sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
  EXPECT_EQ(NextFrame(far, 0), out);
  EXPECT_GE(LinkOf("eth0").received.packets, 1U);
  EXPECT_GE(LinkOf("eth0").sent.bytes, out.size());
}

/// While it lives, what this thread sends is worked on by one processor, one after the other.
class OnOneProcessor {
 public:
  OnOneProcessor() {
    EXPECT_EQ(sched_getaffinity(0, sizeof(before_), &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }

  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;

  ~OnOneProcessor() { sched_setaffinity(0, sizeof(before_), &before_); }

 private:
  cpu_set_t before_{};
};

// That something does not come is seen by what was sent behind it: the kernel is done with the
// first one when the second one is there.
TEST_F(RedirectTest, TheKernelsOwnStackSeesNothing) {
  const OnOneProcessor in_order;
  const UniqueFd far = FarEnd();
  const auto send = [&far](const std::string& frame) {
    EXPECT_EQ(write(far.get(), frame.data(), frame.size()), static_cast<ssize_t>(frame.size()));
  };
  // Whatever the packet is, the kernel counts it.
  const std::string packet =
      std::string("\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x09\x08\x00", 14) + std::string(50, 'x');
  const auto counted = [this] {
    return std::stoll(RunIn(pod_, "awk '/^Ip: [0-9]/ {print $4}' /proc/net/snmp"));
  };
  const auto expect_counted = [&](int64_t before) {
    const Deadline until = InTenSeconds();
    while (counted() == before && std::chrono::steady_clock::now() < until) {
    }
    EXPECT_EQ(counted(), before + 1);
  };
  const int64_t before = counted();
  send(packet);
  expect_counted(before);
  const Tap tap = NewTap();
  Join(tap.index);
  send(packet);
  send(FrameWith("behind it"));
  EXPECT_EQ(NextFrame(tap.fd, kTapHeaderBytes), FrameWith("behind it"));
  EXPECT_EQ(counted(), before + 1) << "it came to the guest, and to the pod too";
  for (const int32_t index : {eth0_, tap.index}) {
    ASSERT_TRUE(EndRedirect(*socket_, index, InTenSeconds()));
  }
  send(packet);
  expect_counted(before + 1);
}

TEST_F(RedirectTest, LeavesNothingBehind) {
  const std::string before = Filters("eth0");
  const Tap tap = NewTap();
  for (int i = 0; i < 2; ++i) {
    Join(tap.index);
    EXPECT_THAT(Filters("eth0"), HasSubstr("mirred"));
    for (int again = 0; again < 2; ++again) {
      const Status ended = EndRedirect(*socket_, eth0_, InTenSeconds());
      EXPECT_TRUE(ended) << ended.error().message;
      EXPECT_TRUE(EndRedirect(*socket_, tap.index, InTenSeconds()));
    }
    EXPECT_EQ(Filters("eth0"), before);
  }
}

TEST_F(RedirectTest, OfAnInterfaceThatIsGoneThereIsNothingToEnd) {
  EXPECT_TRUE(EndRedirect(*socket_, 4711, InTenSeconds()));
  EXPECT_TRUE(RemoveLink(*socket_, 4711, InTenSeconds()));
  EXPECT_EQ(Redirect(*socket_, 4711, eth0_, InTenSeconds()).error().sys_errno, ENODEV);
}

TEST_F(RedirectTest, LeavesTheRulesOfOthersAsTheyAre) {
  for (const char* kind : {"clsact", "ingress"}) {
    RunIn(pod_, Format("tc qdisc add dev eth0 {}\n"
                       "tc filter add dev eth0 ingress pref 7 protocol 0x88b6 u32 match u8 0 0 "
                       "flowid 1:1\n",
                       kind));
    const std::string before = Filters("eth0");
    const Tap tap = NewTap();
    Join(tap.index);
    EXPECT_THAT(Filters("eth0"), HasSubstr("mirred"));
    ASSERT_TRUE(EndRedirect(*socket_, eth0_, InTenSeconds()));
    EXPECT_EQ(Filters("eth0"), before);
    RunIn(pod_, Format("tc qdisc del dev eth0 {}", kind));
  }
}

TEST_F(RedirectTest, ATapIsThereAsLongAsItsDescriptor) {
  Tap tap = NewTap();
  Join(tap.index);
  const LinkInfo made = LinkOf("tap0");
  EXPECT_EQ(made.index, tap.index);
  EXPECT_EQ(made.kind, "tun");
  EXPECT_NE(made.flags & IFF_UP, 0U);
  EXPECT_THAT(RunIn(pod_, "ip -o link show tap0"), HasSubstr("mtu 1450"));
  EXPECT_THAT(RunIn(pod_, "ip addr show tap0"), Not(HasSubstr("inet")));
  EXPECT_EQ(fcntl(tap.fd.get(), F_GETFD), FD_CLOEXEC);
  tap.fd.reset();
  EXPECT_EQ(LinkOf("tap0").index, 0);
  ASSERT_TRUE(EndRedirect(*socket_, eth0_, InTenSeconds()));
  EXPECT_THAT(Filters("eth0"), Not(HasSubstr("ingress")));
}

TEST_F(RedirectTest, ATapOfAnOwnerStaysUntilItIsRemoved) {
  const Tap tap = NewTap("tap0", 12345);
  EXPECT_FALSE(tap.fd);
  EXPECT_THAT(RunIn(pod_, "ip -d link show tap0"), HasSubstr("user 12345"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(RemoveLink(*socket_, tap.index, InTenSeconds()));
    EXPECT_EQ(LinkOf("tap0").index, 0);
  }
}

TEST_F(RedirectTest, ANameThatIsTakenIsRefused) {
  const auto taken = MakeTap(*netns_, *socket_, {.name = "eth0"}, InTenSeconds());
  EXPECT_EQ(taken.error().code, Code::kAlreadyExists);
  EXPECT_EQ(taken.error().message, "make tap 'eth0': there is another interface of that name");
  const Tap stays = NewTap("tap0", 0);
  EXPECT_EQ(MakeTap(*netns_, *socket_, {.name = "tap0"}, InTenSeconds()).error().code,
            Code::kAlreadyExists)
      << "one that somebody else may hold";
  for (const char* name : {"", "sixteen-bytes-ab"}) {
    EXPECT_EQ(MakeTap(*netns_, *socket_, {.name = name}, InTenSeconds()).error().code,
              Code::kInvalidArgument);
  }
}

// K12: traffic control is busy now and then, when many change it at once.
TEST_F(RedirectTest, ManyAtOnceDoNotFail) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      RouteSocket socket = RouteSocket::In(*netns_).value();
      for (int round = 0; round < kRounds; ++round) {
        const std::string name = Format("tap{}", i);
        auto tap = MakeTap(*netns_, socket, {.name = name}, InTenSeconds());
        ASSERT_TRUE(tap) << tap.error().message;
        const Status there = Redirect(socket, tap->index, eth0_, InTenSeconds());
        EXPECT_TRUE(there) << there.error().message;
        const Status ended = EndRedirect(socket, tap->index, InTenSeconds());
        EXPECT_TRUE(ended) << ended.error().message;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(RedirectTest, InterfacesAreReadWithWhatTheyAre) {
  RunIn(pod_, "ip link add link eth0 name over0 type macvlan mode bridge");
  const LinkInfo eth0 = LinkOf("eth0");
  EXPECT_EQ(eth0.kind, "veth");
  EXPECT_EQ(eth0.mac, std::string("\x02\0\0\0\0\x01", 6));
  EXPECT_EQ(eth0.lower, 0) << "its other end is in another namespace";
  EXPECT_EQ(LinkOf("over0").lower, eth0.index);
  EXPECT_EQ(LinkOf("over0").kind, "macvlan");
  EXPECT_EQ(LinkOf("lo").mac, "");
  EXPECT_FALSE(LinkInfo::From("short"));
}

TEST(MessageTest, AttributesAreReadBack) {
  std::string message = MessageOf(uint32_t{7});
  AddWord(message, 1, "word");
  AddNumber(message, 2, 4711);
  std::string inner;
  AddNumber(inner, 4, 5);
  AddAttribute(message, 3, inner);
  const Attributes read(std::string_view(message).substr(4));
  EXPECT_EQ(read.Find(1), std::string("word\0", 5));
  EXPECT_EQ(read.Number(2), 4711U);
  EXPECT_EQ(Attributes(read.Find(3)).Number(4), 5U);
  EXPECT_EQ(message.size() % 4, 0U);
}

}  // namespace
}  // namespace gantry::net
