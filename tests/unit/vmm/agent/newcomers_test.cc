// SPDX-License-Identifier: Apache-2.0
//
// Processes of the guest that dial the control port and are not its agent.
#include "plugins/vmm/agent/newcomers.h"

#include <poll.h>
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

const std::string kSecret(protocol::kTokenBytes, 's');

std::string HelloWith(const std::string& session) {
  protocol::Hello hello;
  hello.first_version = protocol::kFirstVersion;
  hello.last_version = protocol::kLastVersion;
  hello.agent = "gantry-agent";
  hello.session = session;
  return protocol::Framed(EncodeProto(EventOf(protocol::Kind::kHello, EncodeProto(hello))));
}

class NewcomersTest : public testing::Test {
 protected:
  NewcomersTest() : path_(Format("/tmp/gantry-newcomers-{}", ::getpid())) { Listen(kLong); }

  ~NewcomersTest() override { ::unlink(path_.c_str()); }

  void Listen(std::chrono::milliseconds patience) {
    newcomers_.reset();
    ::unlink(path_.c_str());
    newcomers_ = std::move(*Newcomers::On(std::move(*ListenUnix(path_)), patience));
  }

  /// The number of the one that dials.
  size_t Dial(const std::string& bytes = {}) {
    dialled_.push_back(std::move(*ConnectUnix(path_)));
    Say(dialled_.size() - 1, bytes);
    return dialled_.size() - 1;
  }

  void Say(size_t number, const std::string& bytes) {
    EXPECT_EQ(::send(dialled_[number].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  bool IsReadable() const {
    pollfd one{.fd = newcomers_->fd(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
  }

  /// All that there is to hear now.
  std::optional<Greeted> HearAll() {
    while (IsReadable()) {
      auto heard = newcomers_->OnReadable(kSecret);
      if (heard && *heard) {
        return std::move(*heard);
      }
      last_ = heard ? last_ : heard.error().message;
    }
    return std::nullopt;
  }

  static constexpr std::chrono::hours kLong{1};

  std::string path_;
  std::unique_ptr<Newcomers> newcomers_;
  std::vector<UniqueFd> dialled_;
  std::string last_;
};

TEST_F(NewcomersTest, WhoIsSilentIsInNobodysWay) {
  for (int i = 0; i < 5; ++i) {
    Dial();
  }
  Dial(HelloWith(kSecret).substr(0, 3));
  EXPECT_FALSE(HearAll());
  EXPECT_EQ(newcomers_->size(), 6U);
  Dial(HelloWith(kSecret));
  const auto greeted = HearAll();
  ASSERT_TRUE(greeted);
  EXPECT_EQ(greeted->hello.agent, "gantry-agent");
  EXPECT_EQ(newcomers_->size(), 6U) << "they have their time still";
}

TEST_F(NewcomersTest, AHelloMayComeByteByByte) {
  const size_t agent = Dial();
  const std::string hello = HelloWith(kSecret);
  for (const char byte : hello.substr(0, hello.size() - 1)) {
    Say(agent, std::string(1, byte));
    EXPECT_FALSE(HearAll());
  }
  Say(agent, hello.substr(hello.size() - 1));
  EXPECT_TRUE(HearAll());
  EXPECT_EQ(last_, "");
}

TEST_F(NewcomersTest, OfManyTheOldestIsLetGo) {
  const size_t first = Dial();
  EXPECT_FALSE(HearAll());
  for (size_t i = 0; i < 5 * Newcomers::kMost; ++i) {
    Dial();
    EXPECT_FALSE(HearAll());
    EXPECT_LE(newcomers_->size(), Newcomers::kMost);
  }
  char byte = 0;
  EXPECT_EQ(::recv(dialled_[first].get(), &byte, 1, 0), 0) << "it is closed";
  Dial(HelloWith(kSecret));
  EXPECT_TRUE(HearAll());
}

TEST_F(NewcomersTest, OneThatDripsHasNoMoreTimeThanASilentOne) {
  Listen(std::chrono::milliseconds(50));
  const std::string hello = HelloWith(kSecret);
  const size_t drips = Dial(hello.substr(0, 1));
  // All but its last byte; nobody may be there any more.
  size_t said = 1;
  while (last_.empty()) {
    pollfd one{.fd = newcomers_->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&one, 1, -1), 1);
    EXPECT_FALSE(HearAll());
    if (said + 1 < hello.size()) {
      [[maybe_unused]] const ssize_t sent =
          ::send(dialled_[drips].get(), &hello[said++], 1, MSG_NOSIGNAL);
    }
  }
  EXPECT_THAT(last_, HasSubstr("no hello within 50 ms"));
  EXPECT_EQ(newcomers_->size(), 0U);
}

TEST_F(NewcomersTest, WhoSaysSomethingElseIsLetGoAtOnce) {
  for (const std::string& bytes :
       {HelloWith("another"), HelloWith(""), std::string("GET / HTTP/1.1\r\n\r\n"),
        protocol::Framed("\xff\xff"), std::string(4, '\0'), std::string("\xff\xff\xff\xff"),
        protocol::Framed(EncodeProto(EventOf(protocol::Kind::kExited, "")))}) {
    last_.clear();
    const size_t stranger = Dial(bytes);
    EXPECT_FALSE(HearAll());
    EXPECT_NE(last_, "");
    EXPECT_EQ(newcomers_->size(), 0U);
    char byte = 0;
    EXPECT_LE(::recv(dialled_[stranger].get(), &byte, 1, 0), 0) << "it is closed";
  }
}

}  // namespace
}  // namespace gantry::vmm
