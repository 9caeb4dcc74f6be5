// SPDX-License-Identifier: Apache-2.0
// HTTP components.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/engine/include/gantry_wasm_engine.h"
#include "tests/unit/wasm/engine/guest.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class Client {
 public:
  explicit Client(const sockaddr_in& address)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  ~Client() { close(socket_); }

  void Send(const std::string& text) const {
    EXPECT_EQ(send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  /// Up to this text, or to the end.
  std::string Until(const std::string& text) const {
    std::string got;
    for (char byte = 0; !got.ends_with(text) && recv(socket_, &byte, 1, 0) == 1;) {
      got += byte;
    }
    return got;
  }

  std::string Get(const std::string& path) const {
    Send("GET " + path + " HTTP/1.1\r\nHost: gantry\r\n\r\n");
    // In pieces, of which the last is empty; or with its length.
    std::string head = Until("\r\n\r\n");
    return head + Until(head.contains("chunked") ? "0\r\n\r\n" : "\n");
  }

 private:
  int socket_;
};

class Proxy : public testing::Test {
 protected:
  Proxy() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    EXPECT_EQ(listen(listener, 64), 0);
    socklen_t size = sizeof address_;
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address_), &size), 0);
    EXPECT_EQ(pipe2(errors_, O_CLOEXEC), 0);
    guest_.emplace(Guest{
        .name = "proxy_component", .args = {"proxy"}, .listener = listener, .err = errors_[1]});
    close(listener);
    close(errors_[1]);
  }

  ~Proxy() override { close(errors_[0]); }

  std::string ErrorLine() const {
    std::string line;
    for (char byte = 0; read(errors_[0], &byte, 1) == 1 && byte != '\n';) {
      line += byte;
    }
    return line;
  }

  sockaddr_in address_ = {};
  int errors_[2] = {-1, -1};
  std::optional<RunningGuest> guest_;
};

TEST_F(Proxy, AnswersEachRequestWithAnInstanceOfItsOwn) {
  EXPECT_EQ(KindOf("proxy_component"), static_cast<uint32_t>(GANTRY_WASM_PROXY));
  const Client client(address_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client.Get("/"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("requests: 1\n")));
  }
}

TEST_F(Proxy, HasOneThread) {
  const Client first(address_);
  const Client second(address_);
  EXPECT_THAT(second.Get("/"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(first.Get("/"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(guest_->Threads(), 1);
}

TEST_F(Proxy, ATrapIsTheEndOfItsRequestAlone) {
  const Client client(address_);
  EXPECT_THAT(client.Get("/trap"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(ErrorLine(), AllOf(HasSubstr("a request failed"), HasSubstr("unreachable")));
  EXPECT_THAT(client.Get("/"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Proxy, ATrapBehindTheHeadEndsTheConnection) {
  const Client client(address_);
  EXPECT_THAT(client.Get("/late"), testing::Not(EndsWith("0\r\n\r\n")));
  EXPECT_THAT(ErrorLine(), HasSubstr("unreachable"));
  EXPECT_THAT(Client(address_).Get("/"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Proxy, RefusesWhatIsNoRequest) {
  const Client text(address_);
  text.Send("this is no HTTP\r\n\r\n");
  EXPECT_THAT(text.Until("\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  const Client nameless(address_);
  nameless.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(nameless.Until("host\n"), HasSubstr("400 Bad Request"));
  const Client large(address_);
  large.Send("GET / HTTP/1.1\r\nHost: gantry\r\nA: " + std::string(70000, 'a'));
  EXPECT_THAT(large.Until("\r\n\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Client(address_).Get("/"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace gantry::wasm
