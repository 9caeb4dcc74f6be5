// SPDX-License-Identifier: Apache-2.0
//
// Connections that wait for processes, and processes that wait for connections.
#include "core/keeper_client/parked_streams.h"

#include <sys/socket.h>

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

namespace gantry::keeper_client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ParkedStreamsTest : public testing::Test {
 protected:
  /// Gives the client's end.
  UniqueFd Open(uint64_t connection, const std::string& id, const std::string& address = "a") {
    auto pair = UnixSocketPair().value();
    streams_.Opened(address, id, {connection, 1, std::move(pair.first)});
    return std::move(pair.second);
  }

  uint64_t Await(const std::string& id, const std::string& address = "a") {
    return streams_.Await(address, id, [this](ParkedStreams::Stream stream) {
      EXPECT_TRUE(stream.socket);
      arrived_.push_back(stream.connection);
      sockets_.push_back(std::move(stream.socket));
    });
  }

  static bool Closed(const UniqueFd& client) {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::vector<uint64_t> arrived_;
  std::vector<UniqueFd> sockets_;
  std::vector<uint64_t> took_;
  ParkedStreams streams_{[this](uint64_t connection) { took_.push_back(connection); }};
};

TEST_F(ParkedStreamsTest, WhoComesFirstWaits) {
  const UniqueFd early = Open(1, "x");
  EXPECT_THAT(arrived_, IsEmpty());
  Await("x");
  EXPECT_THAT(arrived_, ElementsAre(1));
  Await("y");
  const UniqueFd late = Open(2, "y");
  EXPECT_THAT(arrived_, ElementsAre(1, 2));
  EXPECT_THAT(took_, IsEmpty());
}

TEST_F(ParkedStreamsTest, OneIsThereForTheNextUntilItIsTaken) {
  const UniqueFd client = Open(1, "x");
  streams_.Forget(Await("x"));
  Await("x");
  EXPECT_THAT(arrived_, ElementsAre(1, 1));
  streams_.Took(1);
  EXPECT_THAT(took_, ElementsAre(1));
  Await("x");
  EXPECT_THAT(arrived_, ElementsAre(1, 1));
  EXPECT_FALSE(Closed(client)) << "who took it has it";
  EXPECT_EQ(streams_.size(), 0U);
}

TEST_F(ParkedStreamsTest, TheSameNameElsewhereIsAnother) {
  Await("x");
  const UniqueFd client = Open(1, "x", "b");
  EXPECT_THAT(arrived_, IsEmpty());
  Await("x", "b");
  EXPECT_THAT(arrived_, ElementsAre(1));
}

TEST_F(ParkedStreamsTest, TheNewerOfTwoThatWaitCounts) {
  const UniqueFd first = Open(1, "x");
  const UniqueFd second = Open(2, "x");
  EXPECT_TRUE(Closed(first));
  EXPECT_FALSE(Closed(second));
  EXPECT_THAT(took_, ElementsAre(1));
  Await("x");
  EXPECT_THAT(arrived_, ElementsAre(2));
}

TEST_F(ParkedStreamsTest, OneThatItsClientClosedIsGone) {
  const UniqueFd client = Open(1, "x");
  streams_.Closed(1);
  Await("x");
  EXPECT_THAT(arrived_, IsEmpty());
  EXPECT_THAT(took_, IsEmpty());
  EXPECT_EQ(streams_.size(), 0U);
}

TEST_F(ParkedStreamsTest, WhoHasForgottenHearsNothing) {
  const uint64_t first = Await("x");
  Await("x");
  // That of before, which is not the one that waits now.
  streams_.Forget(first);
  const UniqueFd one = Open(1, "x");
  EXPECT_THAT(arrived_, ElementsAre(1));
  streams_.Forget(first);
  streams_.Forget(0);
}

}  // namespace
}  // namespace gantry::keeper_client
