// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/streams.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "plugins/vmm/protocol/frames.h"
#include "tests/unit/vmm/agent/guest_end.h"

namespace gantry::vmm {
namespace {

class Streams : public testing::Test {
 protected:
  Streams() : path_(Format("/tmp/gantry-streams-{}", ::getpid())) {
    ::unlink(path_.c_str());
    streams_ = std::move(*StreamListener::On(std::move(*ListenUnix(path_))));
  }

  ~Streams() override { ::unlink(path_.c_str()); }

  UniqueFd Dial(const std::string& bytes) {
    UniqueFd socket = std::move(*ConnectUnix(path_));
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return socket;
  }

  /// As long as there is something to read.
  void Turn() {
    for (;;) {
      pollfd one{.fd = streams_->fd(), .events = POLLIN, .revents = 0};
      if (::poll(&one, 1, 0) <= 0) {
        return;
      }
      streams_->OnReadable();
    }
  }

  /// Whether the host has closed it.
  static bool IsClosed(const UniqueFd& socket) {
    char byte = 0;
    const ssize_t got = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

  std::string path_;
  std::unique_ptr<StreamListener> streams_;
};

TEST_F(Streams, AreTakenByTheirTokenWithNothingBehindItRead) {
  const std::string token = *streams_->Expect();
  const UniqueFd guest = Dial(protocol::Framed(token) + protocol::Framed("out"));
  Turn();
  const auto taken = streams_->Take(token, Soon());
  ASSERT_TRUE(taken) << taken.error().message;
  char bytes[16] = {};
  EXPECT_EQ(::recv(taken->get(), bytes, sizeof(bytes), 0), 7);
  EXPECT_EQ(std::string(bytes + 4, 3), "out");
  EXPECT_EQ(streams_->Take(token, Soon()).error().code, Code::kFailedPrecondition) << "once";
}

TEST_F(Streams, MayComeByteByByte) {
  const std::string token = *streams_->Expect();
  const std::string hello = protocol::Framed(token);
  const UniqueFd guest = Dial("");
  for (const char byte : hello) {
    EXPECT_EQ(::send(guest.get(), &byte, 1, MSG_NOSIGNAL), 1);
    Turn();
  }
  EXPECT_TRUE(streams_->Take(token, Soon()));
}

TEST_F(Streams, OfNobodyAreClosed) {
  const std::string token = *streams_->Expect();
  const UniqueFd unknown = Dial(protocol::Framed(std::string(protocol::kTokenBytes, 'x')));
  const UniqueFd longer = Dial(protocol::Framed(token + "x"));
  const UniqueFd garbage = Dial("\xff\xff\xff\xff");
  const UniqueFd first = Dial(protocol::Framed(token));
  Turn();
  const UniqueFd second = Dial(protocol::Framed(token));
  Turn();
  EXPECT_TRUE(IsClosed(unknown));
  EXPECT_TRUE(IsClosed(longer));
  EXPECT_TRUE(IsClosed(garbage));
  EXPECT_TRUE(IsClosed(second)) << "the token is taken";
  EXPECT_FALSE(IsClosed(first));
}

TEST_F(Streams, ThatSayNothingAreFewAndTheOldestGoes) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < StreamListener::kMaxUnknown + 10; ++i) {
    silent.push_back(Dial(""));
    Turn();
  }
  EXPECT_TRUE(IsClosed(silent.front()));
  EXPECT_FALSE(IsClosed(silent.back()));
  const std::string token = *streams_->Expect();
  const UniqueFd guest = Dial(protocol::Framed(token));
  Turn();
  EXPECT_TRUE(streams_->Take(token, Soon())) << "the agent's comes through all the same";
}

TEST_F(Streams, ThatDoNotComeAreAnErrorAtTheDeadline) {
  const std::string token = *streams_->Expect();
  const auto none = streams_->Take(token, In(std::chrono::milliseconds(1)));
  EXPECT_EQ(none.error().code, Code::kDeadlineExceeded);
  const UniqueFd late = Dial(protocol::Framed(token));
  Turn();
  EXPECT_TRUE(IsClosed(late)) << "nobody expects it any more";
}

TEST_F(Streams, AreExpectedUpToALimit) {
  std::string last;
  for (size_t i = 0; i < StreamListener::kMaxExpected; ++i) {
    last = *streams_->Expect();
  }
  EXPECT_EQ(streams_->Expect().error().code, Code::kResourceExhausted);
  streams_->Forget(last);
  EXPECT_TRUE(streams_->Expect());
}

}  // namespace
}  // namespace gantry::vmm
