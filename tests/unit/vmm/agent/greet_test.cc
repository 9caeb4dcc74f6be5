// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/greet.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/envelope.h"
#include "plugins/vmm/protocol/frames.h"
#include "tests/unit/vmm/agent/guest_end.h"

namespace gantry::vmm {
namespace {

using testing::HasSubstr;

std::string HelloFrame(const protocol::Hello& hello) {
  return protocol::Framed(EncodeProto(EventOf(protocol::Kind::kHello, EncodeProto(hello))));
}

protocol::Hello GoodHello() {
  protocol::Hello hello;
  hello.first_version = protocol::kFirstVersion;
  hello.last_version = protocol::kLastVersion;
  hello.agent = "gantry-agent";
  return hello;
}

class Greet : public testing::Test {
 protected:
  Greet() : path_(Format("/tmp/gantry-greet-{}", ::getpid())) {
    ::unlink(path_.c_str());
    listener_ = std::move(*ListenUnix(path_));
  }

  ~Greet() override { ::unlink(path_.c_str()); }

  /// A connection that has said `bytes`; it is kept open.
  void Dial(const std::string& bytes) {
    UniqueFd socket = std::move(*ConnectUnix(path_));
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    dialled_.push_back(std::move(socket));
  }

  std::string path_;
  UniqueFd listener_;
  std::vector<UniqueFd> dialled_;
};

TEST_F(Greet, TakesTheFirstAgentAndMakesASecret) {
  Dial(HelloFrame(GoodHello()));
  const auto greeted = GreetAgent(listener_, "", Soon());
  ASSERT_TRUE(greeted) << greeted.error().message;
  EXPECT_EQ(greeted->version, protocol::kLastVersion);
  EXPECT_EQ(greeted->session.size(), protocol::kTokenBytes);
  EXPECT_EQ(greeted->hello.agent, "gantry-agent");
}

TEST_F(Greet, TakesNobodyForTheAgentWhoDoesNotKnowTheSecret) {
  const std::string secret(protocol::kTokenBytes, 's');
  protocol::Hello wrong = GoodHello();
  wrong.session = std::string(protocol::kTokenBytes, 't');
  Dial(HelloFrame(GoodHello()));
  Dial(HelloFrame(wrong));
  Dial("GET / HTTP/1.1\r\n\r\n");
  protocol::Hello right = GoodHello();
  right.session = secret;
  Dial(HelloFrame(right));
  const auto greeted = GreetAgent(listener_, secret, Soon());
  ASSERT_TRUE(greeted) << greeted.error().message;
  EXPECT_EQ(greeted->session, secret);
  char byte = 0;
  EXPECT_EQ(::recv(dialled_[0].get(), &byte, 1, MSG_WAITALL), 0) << "it is closed";
}

TEST_F(Greet, TellsAnAgentOfAnotherVersionAndSaysWhich) {
  protocol::Hello hello = GoodHello();
  hello.first_version = protocol::kLastVersion + 1;
  hello.last_version = protocol::kLastVersion + 3;
  Dial(HelloFrame(hello));
  const auto greeted = GreetAgent(listener_, "", Soon());
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(greeted.error().message, HasSubstr("it speaks versions 2 to 4, and this gantry 1"));
  char bytes[512];
  EXPECT_GT(::recv(dialled_[0].get(), bytes, sizeof(bytes), 0), 0) << "the agent hears it, too";
}

TEST_F(Greet, SaysAtItsDeadlineWhatHadDialled) {
  const auto none = GreetAgent(listener_, "", In(std::chrono::milliseconds(1)));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kDeadlineExceeded);
  EXPECT_EQ(none.error().message, "wait for the guest agent's hello: nothing has come in time");
  Dial(protocol::Framed("\xff\xff"));
  const auto garbage = GreetAgent(listener_, "", In(std::chrono::milliseconds(100)));
  EXPECT_THAT(garbage.error().message, HasSubstr("the last that dialled: decode a message"));
}

}  // namespace
}  // namespace gantry::vmm
