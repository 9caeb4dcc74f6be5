// SPDX-License-Identifier: Apache-2.0
//
// Leading connections, with the kernel's own namespaces and programs.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/toolkit/forward/loopback.h>

#include "tests/unit/toolkit/forward/forward_fixture.h"

namespace gantry::forward {
namespace {

/// A pod's namespace whose connections are led.
struct Led {
  UniqueFd netns = NetnsWithLoopback();
  UniqueFd listener;
  UniqueFd link;

  Led() {
    const auto space = net::Netns::Open(PathOfFd(netns));
    listener = forward::ListenOnLoopback(*space).value_or(UniqueFd());
    link = forward::LeadLoopback(*space, listener).value_or(UniqueFd());
  }

  /// The port by which one has come.
  std::optional<uint16_t> Port() const {
    const auto accepted = forward::AcceptOnLoopback(listener);
    return accepted && *accepted ? std::optional((*accepted)->port) : std::nullopt;
  }
};

class LoopbackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to make network namespaces";
    }
    if (const Status can = forward::CanLeadLoopback(); !can) {
      GTEST_SKIP() << can.error().message;
    }
    ASSERT_TRUE(pod_.emplace().link);
  }

  std::optional<Led> pod_;
};

TEST_F(LoopbackTest, LeadsEachPortToOneListener) {
  for (const auto& [address, port] : {std::pair("127.0.0.1", 8080), std::pair("127.9.8.7", 1),
                                      std::pair("::1", 65535), std::pair("127.0.0.1", 8080)}) {
    const auto [socket, failed] = ConnectIn(&pod_->netns, address, static_cast<uint16_t>(port));
    EXPECT_EQ(failed, 0) << address;
    EXPECT_EQ(pod_->Port(), port) << address;
  }
}

TEST_F(LoopbackTest, CarriesBytes) {
  const auto [client, failed] = ConnectIn(&pod_->netns, "127.0.0.1", 80);
  ASSERT_EQ(failed, 0);
  auto accepted = forward::AcceptOnLoopback(pod_->listener);
  ASSERT_TRUE(accepted && *accepted);
  ASSERT_TRUE(SendText(client, "there"));
  ASSERT_TRUE(SendText((*accepted)->socket, "and back"));
  EXPECT_EQ(ReadSome((*accepted)->socket, 5), "there");
  EXPECT_EQ(ReadSome(client, 8), "and back");
}

TEST_F(LoopbackTest, GivesNoneWhereNobodyWaits) {
  // As the store has it, an accept would wait: there it stands for what it accepts otherwise.
  EXPECT_EQ(fcntl(pod_->listener.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(pod_->Port(), std::nullopt);
}

TEST_F(LoopbackTest, LeavesOtherAddressesAlone) {
  ASSERT_TRUE(AddAddress(pod_->netns, "10.1.2.3"));
  const auto [listener, port] = ListenIn(&pod_->netns, "10.1.2.3");
  ASSERT_TRUE(listener);
  EXPECT_EQ(ConnectIn(&pod_->netns, "10.1.2.3", port).second, 0);
  EXPECT_EQ(ConnectIn(&pod_->netns, "10.1.2.3", 1).second, ECONNREFUSED);
  EXPECT_EQ(pod_->Port(), std::nullopt);
}

TEST_F(LoopbackTest, KeepsNamespacesApart) {
  const Led other;
  ASSERT_TRUE(other.link);
  EXPECT_EQ(ConnectIn(&other.netns, "127.0.0.1", 8080).second, 0);
  EXPECT_EQ(pod_->Port(), std::nullopt);
  EXPECT_EQ(other.Port(), 8080);
}

TEST_F(LoopbackTest, EndsWithTheLastDescriptor) {
  UniqueFd copy = pod_->link.Duplicate().value();
  pod_->link.reset();
  EXPECT_EQ(ConnectIn(&pod_->netns, "127.0.0.1", 8080).second, 0);
  copy.reset();
  EXPECT_EQ(ConnectIn(&pod_->netns, "127.0.0.1", 8080).second, ECONNREFUSED);
}

TEST_F(LoopbackTest, SaysWhichPrivilegesItNeeds) {
  Status can;
  // Of this thread alone.
  std::thread([&can] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    ASSERT_EQ(syscall(SYS_capset, &header, none.data()), 0);
    can = forward::CanLeadLoopback();
  }).join();
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().code, Code::kPermissionDenied);
  EXPECT_NE(can.error().message.find("CAP_BPF"), std::string::npos) << can.error().message;
}

TEST_F(LoopbackTest, ResetsAConnection) {
  const auto [client, failed] = ConnectIn(&pod_->netns, "::1", 80);
  ASSERT_EQ(failed, 0);
  auto accepted = forward::AcceptOnLoopback(pod_->listener);
  ASSERT_TRUE(accepted && *accepted);
  forward::ResetConnection(std::move((*accepted)->socket));
  int error = 0;
  EXPECT_EQ(ReadAll(client, &error), "");
  EXPECT_EQ(error, ECONNRESET);
}

}  // namespace
}  // namespace gantry::forward
