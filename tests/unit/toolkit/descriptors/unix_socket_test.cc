// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/connect_unix.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/os/fs.h"
#include "core/os/splice.h"

namespace gantry {
namespace {

using os::BytesQueued;
using os::ReadSome;
using os::WriteSome;

class UnixSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TempDir::Create();
    ASSERT_TRUE(made);
    dir_ = std::move(*made);
  }

  std::string Path() const { return dir_.path() + "/s"; }

  os::TempDir dir_;
};

using SendFdsTest = UnixSocketTest;

bool IsCloexec(int fd) { return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

TEST_F(UnixSocketTest, ConnectsAndTellsThePeer) {
  const auto listener = ListenUnix(Path());
  ASSERT_TRUE(listener);
  EXPECT_EQ(AcceptUnix(listener->get()).value(), std::nullopt);
  const auto client = ConnectUnix(Path());
  ASSERT_TRUE(client);
  const auto server = AcceptUnix(listener->get());
  ASSERT_TRUE(server.value());
  EXPECT_TRUE(IsCloexec(listener->get()));
  EXPECT_TRUE(IsCloexec((*server)->get()));
  EXPECT_EQ(PeerOf((*server)->get())->pid, getpid());
  EXPECT_EQ(PeerOf(client->get())->uid, geteuid());
}

TEST_F(UnixSocketTest, IsForItsOwnerAlone) {
  const mode_t old = umask(0);
  const auto listener = ListenUnix(Path());
  umask(old);
  struct stat status{};
  ASSERT_EQ(stat(Path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, mode_t{0600});
}

TEST_F(UnixSocketTest, RefusesAPathThatDoesNotFit) {
  const std::string longest = dir_.path() + "/" + std::string(106 - dir_.path().size(), 'x');
  ASSERT_EQ(longest.size(), kMaxSocketPath);
  EXPECT_TRUE(ListenUnix(longest));
  EXPECT_TRUE(ConnectUnix(longest).error().code == Code::kUnavailable);
  EXPECT_EQ(ListenUnix(longest + "x").error().code, Code::kInvalidArgument);
  EXPECT_EQ(ConnectUnix(longest + "x").error().code, Code::kInvalidArgument);
  EXPECT_EQ(ConnectUnix("").error().code, Code::kInvalidArgument);
}

TEST_F(UnixSocketTest, TellsMissingFromUnattended) {
  EXPECT_EQ(ConnectUnix(Path()).error().code, Code::kNotFound);
  {
    const auto listener = ListenUnix(Path());
  }
  EXPECT_EQ(ConnectUnix(Path()).error().code, Code::kUnavailable);
  EXPECT_EQ(ListenUnix(Path()).error().code, Code::kFailedPrecondition);
}

TEST_F(UnixSocketTest, IsReachedByAPathOfAnyLength) {
  const std::string folder = dir_.path() + "/" + std::string(200, 'f');
  ASSERT_TRUE(os::MakeDirs(folder, 0700));
  const auto listener = ListenUnix(Path());
  ASSERT_TRUE(listener);
  ASSERT_EQ(rename(Path().c_str(), (folder + "/s").c_str()), 0);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  EXPECT_EQ(ConnectUnix(folder + "/s").error().code, Code::kInvalidArgument);
  EXPECT_TRUE(ConnectUnixBy(folder + "/s", soon));
  EXPECT_EQ(ConnectUnixBy(folder + "/t", soon).error().sys_errno, ENOENT);
  EXPECT_EQ(ConnectUnixBy(folder + "/" + std::string(120, 'n'), soon).error().sys_errno,
            ENAMETOOLONG);
}

TEST_F(UnixSocketTest, SaysThatItsQueueStaysFull) {
  const auto listener = ListenUnix(Path());
  ASSERT_TRUE(listener);
  ASSERT_EQ(listen(listener->get(), 0), 0);
  std::vector<UniqueFd> waiting;
  while (auto one = ConnectUnix(Path())) {
    waiting.push_back(std::move(*one));
  }
  EXPECT_FALSE(waiting.empty());
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(ConnectUnixBy(Path(), now).error().code, Code::kDeadlineExceeded);
}

TEST_F(SendFdsTest, PassesDescriptorsWithTheFirstByte) {
  auto sockets = UnixSocketPair();
  auto pipe = MakePipe();
  const std::array fds{pipe->first.get(), pipe->second.get()};
  ASSERT_EQ(SendWithFds(sockets->first.get(), std::string_view("hello"), fds)->bytes, 5U);
  std::array<char, 16> buffer{};
  std::vector<UniqueFd> received;
  const auto got = RecvWithFds(sockets->second.get(), buffer, received);
  EXPECT_EQ(std::string_view(buffer.data(), got->bytes), "hello");
  ASSERT_EQ(received.size(), 2U);
  EXPECT_TRUE(IsCloexec(received[0].get()));
  ASSERT_EQ(write(received[1].get(), "x", 1), 1);
  EXPECT_EQ(BytesQueued(received[0].get()).value(), 1U);
}

TEST_F(SendFdsTest, CarriesTheMostAllowedAndNoMore) {
  auto sockets = UnixSocketPair();
  std::vector<int> fds(kMaxMessageFds, sockets->first.get());
  EXPECT_EQ(SendWithFds(sockets->first.get(), std::string_view("x"), fds)->bytes, 1U);
  std::array<char, 1> buffer{};
  std::vector<UniqueFd> received;
  EXPECT_EQ(RecvWithFds(sockets->second.get(), buffer, received)->bytes, 1U);
  EXPECT_EQ(received.size(), kMaxMessageFds);
  fds.push_back(0);
  EXPECT_EQ(SendWithFds(sockets->first.get(), std::string_view("x"), fds).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(SendWithFds(sockets->first.get(), {}, std::array{0}).error().code,
            Code::kInvalidArgument);
}

TEST_F(SendFdsTest, ReportsDescriptorsThatDidNotFit) {
  auto sockets = UnixSocketPair();
  std::array<char, CMSG_SPACE(sizeof(int) * (kMaxMessageFds + 1))> control{};
  char byte = 'x';
  iovec part{.iov_base = &byte, .iov_len = 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * (kMaxMessageFds + 1));
  ASSERT_EQ(sendmsg(sockets->first.get(), &message, 0), 1);
  std::array<char, 1> buffer{};
  std::vector<UniqueFd> received;
  EXPECT_EQ(RecvWithFds(sockets->second.get(), buffer, received).error().code,
            Code::kResourceExhausted);
  EXPECT_TRUE(received.empty());
}

TEST_F(SendFdsTest, TellsEmptyFromEndFromBroken) {
  auto sockets = UnixSocketPair();
  std::array<char, 16> buffer{};
  std::vector<UniqueFd> received;
  EXPECT_TRUE(RecvWithFds(sockets->second.get(), buffer, received)->would_block);
  sockets->first.reset();
  EXPECT_TRUE(RecvWithFds(sockets->second.get(), buffer, received)->end);
  EXPECT_EQ(SendWithFds(sockets->second.get(), std::string_view("x"), {}).error().code,
            Code::kUnavailable);
}

TEST_F(SendFdsTest, TellsAFullSocket) {
  auto sockets = UnixSocketPair();
  const std::string data(1 << 16, 'x');
  Result<Transfer> sent = Transfer{};
  for (int i = 0; i < 1000 && sent && !sent->would_block; ++i) {
    sent = SendWithFds(sockets->first.get(), data, {});
  }
  ASSERT_TRUE(sent);
  EXPECT_TRUE(sent->would_block);
}

TEST(BlockingSocketPair, IsOfItsTypeAndWaits) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const auto pair = BlockingSocketPair(type);
    ASSERT_TRUE(pair);
    for (const UniqueFd* end : {&pair->first, &pair->second}) {
      int found = 0;
      socklen_t size = sizeof(found);
      EXPECT_EQ(getsockopt(end->get(), SOL_SOCKET, SO_TYPE, &found, &size), 0);
      EXPECT_EQ(found, type);
      EXPECT_EQ(fcntl(end->get(), F_GETFL) & O_NONBLOCK, 0);
      EXPECT_EQ(fcntl(end->get(), F_GETFD), FD_CLOEXEC);
    }
  }
}

TEST(Pipe, EachEndWaitsOrDoesNotForItself) {
  const auto pipe = MakePipe();
  ASSERT_TRUE(pipe);
  EXPECT_TRUE(SetNonblocking(pipe->second.get(), false));
  EXPECT_NE(fcntl(pipe->first.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(pipe->second.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(MakeBlockingPipe()->first.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(SetNonblocking(-1, true).error().sys_errno, EBADF);
}

}  // namespace
}  // namespace gantry
