// SPDX-License-Identifier: Apache-2.0
//
// gantry-forward as it runs in a sentry; here it runs on the host, for the same calls.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/toolkit/forward/forward_fixture.h"

namespace gantry::forward {
namespace {

constexpr std::chrono::seconds kEndLimit{20};

/// One connection's.
struct InSentry {
  UniqueFd end;
  std::shared_ptr<HostProcess> process;

  InSentry(FakeSandboxContext& context, uint16_t port) {
    auto ends = BlockingSocketPair(SOCK_STREAM);
    end = std::move(ends->first);
    SpawnRequest request;
    request.argv = {"gantry-forward", std::to_string(port)};
    request.program.reset(open(GANTRY_FORWARD, O_RDONLY | O_CLOEXEC));
    request.fds.emplace_back(std::move(ends->second), 0);
    process = context.Spawn(std::move(request)).value_or(nullptr);
  }

  /// What it says first; 0: it is connected.
  int Said() const {
    const std::string byte = ReadSome(end, 1);
    return byte.empty() ? -1 : static_cast<unsigned char>(byte[0]);
  }

  int Status() const {
    const auto ended = process->Wait(kEndLimit);
    return ended ? static_cast<int>(ended->code()) : -1;
  }
};

class ForwardProgramTest : public testing::Test {
 protected:
  FakeSandboxContext context_;
};

TEST_F(ForwardProgramTest, CarriesBytesBothWays) {
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
  const InSentry forward(context_, port);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_EQ(forward.Said(), 0);
  ASSERT_TRUE(SendText(forward.end, "question"));
  EXPECT_EQ(ReadSome(server, 8), "question");
  ASSERT_TRUE(SendText(server, "answer"));
  EXPECT_EQ(ReadSome(forward.end, 6), "answer");
}

TEST_F(ForwardProgramTest, PassesTheClientsEndAndThenTheAnswer) {
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
  const InSentry forward(context_, port);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_EQ(forward.Said(), 0);
  ASSERT_TRUE(SendText(forward.end, "all of it"));
  ASSERT_EQ(shutdown(forward.end.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(server), "all of it");
  ASSERT_TRUE(SendText(server, "answer"));
  ASSERT_EQ(shutdown(server.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(forward.end), "answer");
  EXPECT_EQ(forward.Status(), 0);
}

TEST_F(ForwardProgramTest, PassesTheServersEndAndThenWhatTheClientSends) {
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
  const InSentry forward(context_, port);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_EQ(forward.Said(), 0);
  ASSERT_EQ(shutdown(server.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(forward.end), "");
  ASSERT_TRUE(SendText(forward.end, "late"));
  ASSERT_EQ(shutdown(forward.end.get(), SHUT_WR), 0);
  EXPECT_EQ(ReadAll(server), "late");
  EXPECT_EQ(forward.Status(), 0);
}

TEST_F(ForwardProgramTest, LosesNothingOfMuch) {
  constexpr size_t kMuch = size_t{8} << 20;
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
  const InSentry forward(context_, port);
  const UniqueFd server = AcceptFrom(listener);
  ASSERT_EQ(forward.Said(), 0);
  std::string up(kMuch, 'u');
  std::string down(kMuch, 'd');
  for (size_t i = 0; i < kMuch; i += 1021) {
    up[i] = static_cast<char>(i);
    down[i] = static_cast<char>(i >> 8);
  }
  // Both are full before one reads.
  std::thread sends_up([&] {
    EXPECT_TRUE(SendText(forward.end, up));
    shutdown(forward.end.get(), SHUT_WR);
  });
  std::thread sends_down([&] {
    EXPECT_TRUE(SendText(server, down));
    shutdown(server.get(), SHUT_WR);
  });
  std::string got_up;
  std::thread reads_up([&] { got_up = ReadAll(server); });
  EXPECT_TRUE(ReadAll(forward.end) == down);
  for (std::thread* one : {&sends_up, &sends_down, &reads_up}) {
    one->join();
  }
  EXPECT_TRUE(got_up == up);
  EXPECT_EQ(forward.Status(), 0);
}

TEST_F(ForwardProgramTest, SaysWhyItCannotConnect) {
  uint16_t port = 0;
  {
    const auto [listener, was] = ListenIn(nullptr, "127.0.0.1");
    port = was;
  }
  const InSentry forward(context_, port);
  EXPECT_EQ(forward.Said(), ECONNREFUSED);
  EXPECT_EQ(ReadAll(forward.end), "");
  EXPECT_EQ(forward.Status(), 1);
}

TEST_F(ForwardProgramTest, ReachesAServerOfTheOtherFamily) {
  const auto [listener, port] = ListenIn(nullptr, "::1");
  if (!listener) {
    GTEST_SKIP() << "there is no IPv6 here";
  }
  const InSentry forward(context_, port);
  EXPECT_EQ(forward.Said(), 0);
}

TEST_F(ForwardProgramTest, EndsWhenTheClientLeavesBeforeTheServerTakesIt) {
  // The kernel drops what is beyond a full queue, and the client tries again for long.
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1", 0, 0);
  const auto [first, failed] = ConnectIn(nullptr, "127.0.0.1", port);
  ASSERT_EQ(failed, 0);
  InSentry forward(context_, port);
  forward.end.reset();
  EXPECT_EQ(forward.Status(), 1);
}

TEST_F(ForwardProgramTest, EndsWithAServerThatIsGone) {
  const auto [listener, port] = ListenIn(nullptr, "127.0.0.1");
  const InSentry forward(context_, port);
  UniqueFd server = AcceptFrom(listener);
  ASSERT_EQ(forward.Said(), 0);
  const linger at_once = {1, 0};
  ASSERT_EQ(setsockopt(server.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  server.reset();
  EXPECT_EQ(ReadAll(forward.end), "");
  EXPECT_EQ(forward.Status(), 0);
}

}  // namespace
}  // namespace gantry::forward
