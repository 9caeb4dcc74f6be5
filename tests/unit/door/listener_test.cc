// SPDX-License-Identifier: Apache-2.0
#include "core/door/listener.h"

#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::door {
namespace {

class ListenerTest : public testing::Test {
 protected:
  UniqueFd Connect() const {
    auto socket = ConnectUnix(path_);
    EXPECT_TRUE(socket) << socket.error().message;
    return socket ? std::move(*socket) : UniqueFd();
  }

  bool HasTaken(size_t count) {
    return test::RunUntil(loop_, [&] { return taken_.size() == count; });
  }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string path_ = dir_.path() + "/s";
  async::Loop loop_;
  std::vector<UniqueFd> taken_;
  Listener listener_{loop_, *ListenUnix(path_),
                     [this](UniqueFd connection) { taken_.push_back(std::move(connection)); }};
};

TEST_F(ListenerTest, GivesEachConnection) {
  const UniqueFd first = Connect();
  const UniqueFd second = Connect();
  EXPECT_TRUE(HasTaken(2));
}

TEST_F(ListenerTest, LetsNobodyInAfterItsStop) {
  listener_.Stop();
  const UniqueFd waits = Connect();
  test::RunAllReady(loop_);
  EXPECT_TRUE(taken_.empty());
}

TEST_F(ListenerTest, HasALimitAndGoesOnWhenOneCloses) {
  std::vector<UniqueFd> clients;
  for (size_t i = 0; i < Listener::kMaxConnections; ++i) {
    clients.push_back(Connect());
    ASSERT_TRUE(HasTaken(i + 1));
  }
  clients.push_back(Connect());
  test::RunAllReady(loop_);
  EXPECT_EQ(taken_.size(), Listener::kMaxConnections);
  clients.front().reset();
  EXPECT_TRUE(HasTaken(Listener::kMaxConnections + 1));
}

}  // namespace
}  // namespace gantry::door
