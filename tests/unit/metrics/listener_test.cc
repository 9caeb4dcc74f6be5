// SPDX-License-Identifier: Apache-2.0
//
// The server on real sockets: what scrapers get, and that none of them holds up another.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>

#include "core/log/log.h"
#include "core/metrics/listen.h"
#include "core/metrics/server.h"
#include "core/os/fs.h"
#include "tests/unit/async/simulated_loop.h"
#include "tests/unit/metrics/grammar.h"

namespace gantry::metrics {
namespace {

using namespace std::chrono_literals;

constexpr char kGet[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

class MetricsListener : public testing::Test {
 protected:
  MetricsListener() {
    log::SetSinkForTest([](std::string_view) {});
    listener_.Begin();
    Turn();
  }

  ~MetricsListener() override { log::SetSinkForTest({}); }

  /// Does all that is ready; no time goes by.
  void Turn() { loop_.Advance(0ns); }

  UniqueFd Connect() {
    auto socket = ConnectUnix(path_);
    EXPECT_TRUE(socket) << socket.error().message;
    Turn();
    return socket ? std::move(*socket) : UniqueFd();
  }

  void Send(const UniqueFd& socket, const std::string& text) {
    EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    Turn();
  }

  /// What has arrived. `ended`: the server has closed.
  std::string Read(const UniqueFd& socket, bool* ended = nullptr) {
    std::string all;
    for (;;) {
      char part[65536];
      const ssize_t bytes = recv(socket.get(), part, sizeof(part), MSG_DONTWAIT);
      if (bytes <= 0) {
        if (ended != nullptr) {
          *ended = bytes == 0 || errno == ECONNRESET;
        }
        return all;
      }
      all.append(part, static_cast<size_t>(bytes));
      Turn();
    }
  }

  bool Ended(const UniqueFd& socket) {
    bool ended = false;
    Read(socket, &ended);
    return ended;
  }

  static std::string BodyOf(const std::string& answer) {
    const size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string path_ = dir_.path() + "/m.sock";
  test::SimulatedLoop loop_;
  int looks_ = 0;
  /// Of a page.
  size_t rows_ = 1;
  Listener listener_{
      loop_, {.address = path_}, [this](Pages::Done done) {
        ++looks_;
        done([this] {
          Moment moment;
          moment.version = "1";
          moment.sandbox_rows.emplace();
          for (size_t i = 0; i < rows_; ++i) {
            moment.sandbox_rows->push_back({.ns = "n", .id = std::to_string(i), .backend = "b"});
          }
          return moment;
        });
      }};
};

TEST_F(MetricsListener, AnswersOneRequestAfterTheOther) {
  const UniqueFd socket = Connect();
  for (int i = 0; i < 3; ++i) {
    Send(socket, kGet);
    const std::string answer = Read(socket);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    const auto read = test::ReadMetrics(BodyOf(answer), false);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(test::SumOf(*read, "gantry_build_info", {{"version", "1"}}), 1);
    loop_.Advance(1s);
  }
  EXPECT_EQ(looks_, 3);
}

TEST_F(MetricsListener, AnswersInOpenMetricsWhereThatIsAskedFor) {
  const UniqueFd socket = Connect();
  Send(socket, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
  const std::string answer = Read(socket);
  EXPECT_TRUE(answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
  const auto read = test::ReadMetrics(BodyOf(answer), true);
  EXPECT_TRUE(read) << read.error().message;
}

TEST_F(MetricsListener, AnswersAllThatWereSentAtOnce) {
  const UniqueFd socket = Connect();
  Send(socket, std::string(kGet) + kGet + kGet);
  const std::string answer = Read(socket);
  size_t answers = 0;
  for (size_t at = answer.find("HTTP/1.1 200"); at != std::string::npos;
       at = answer.find("HTTP/1.1 200", at + 1)) {
    ++answers;
  }
  EXPECT_EQ(answers, 3U);
}

TEST_F(MetricsListener, TakesARequestByteByByte) {
  const UniqueFd socket = Connect();
  for (const char c : std::string(kGet)) {
    EXPECT_EQ(Read(socket), "");
    Send(socket, std::string(1, c));
  }
  EXPECT_TRUE(Read(socket).starts_with("HTTP/1.1 200"));
}

TEST_F(MetricsListener, SaysWhatIsWrongAndCloses) {
  const UniqueFd socket = Connect();
  Send(socket, "GET / HTTP/1.1\r\n\r\n");
  bool ended = false;
  const std::string answer = Read(socket, &ended);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 Not Found\r\n")) << answer;
  EXPECT_TRUE(answer.contains("Connection: close\r\n"));
  EXPECT_EQ(BodyOf(answer), "the metrics are at /metrics\n");
  EXPECT_TRUE(ended);
  EXPECT_EQ(looks_, 0);
}

TEST_F(MetricsListener, SendsNoBodyToHead) {
  const UniqueFd socket = Connect();
  Send(socket, "HEAD /metrics HTTP/1.1\r\n\r\n");
  const std::string answer = Read(socket);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(answer.contains("Content-Length: 0"));
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(MetricsListener, SendsNothingMoreAfterGarbage) {
  const UniqueFd socket = Connect();
  Send(socket, std::string("\x16\x03\x01\r\n\r\n", 7) + kGet);
  bool ended = false;
  const std::string answer = Read(socket, &ended);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << answer;
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
  EXPECT_TRUE(ended);
}

TEST_F(MetricsListener, ClosesWhoDoesNotFinishHisRequest) {
  const UniqueFd socket = Connect();
  Send(socket, "GET ");
  loop_.Advance(ConnectionLimits().head - 1ns);
  EXPECT_FALSE(Ended(socket));
  loop_.Advance(1ns);
  EXPECT_TRUE(Ended(socket));
  EXPECT_EQ(listener_.connections(), 0U);
}

TEST_F(MetricsListener, ClosesWhoAsksNothingForLong) {
  const UniqueFd socket = Connect();
  Send(socket, kGet);
  Read(socket);
  loop_.Advance(ConnectionLimits().idle - 1ns);
  EXPECT_FALSE(Ended(socket));
  loop_.Advance(1ns);
  EXPECT_TRUE(Ended(socket));
}

TEST_F(MetricsListener, ClosesWhoDoesNotReadHisAnswer) {
  rows_ = 20'000;
  const UniqueFd slow = Connect();
  Send(slow, kGet);
  EXPECT_EQ(listener_.connections(), 1U);
  const UniqueFd other = Connect();
  Send(other, kGet);
  EXPECT_GT(Read(other).size(), 1'000'000U) << "nobody waits for the slow one";
  loop_.Advance(ConnectionLimits().answer);
  EXPECT_EQ(listener_.connections(), 1U);
}

TEST_F(MetricsListener, HoldsFewPagesForSlowReaders) {
  rows_ = 5'000;
  std::vector<UniqueFd> slow;
  for (size_t i = 0; i < Listener::kMostPages + 5; ++i) {
    slow.push_back(Connect());
    Send(slow.back(), kGet);
    loop_.Advance(200ms);
  }
  EXPECT_LE(listener_.connections(), Listener::kMostPages + 1);
  EXPECT_TRUE(Ended(slow.front()));
  EXPECT_FALSE(Ended(slow.back()));
}

TEST_F(MetricsListener, ServesAHundredAtOnceWithOneLook) {
  std::vector<UniqueFd> scrapers;
  for (int i = 0; i < 100; ++i) {
    scrapers.push_back(Connect());
  }
  for (const UniqueFd& scraper : scrapers) {
    Send(scraper, kGet);
  }
  for (const UniqueFd& scraper : scrapers) {
    EXPECT_TRUE(test::ReadMetrics(BodyOf(Read(scraper)), false));
  }
  EXPECT_EQ(looks_, 1);
}

TEST_F(MetricsListener, MakesRoomByClosingWhoHasBeenIdleForLongest) {
  std::vector<UniqueFd> idle;
  for (size_t i = 0; i < Listener::kMostConnections; ++i) {
    idle.push_back(Connect());
    loop_.Advance(1ms);
  }
  const UniqueFd scraper = Connect();
  Send(scraper, kGet);
  EXPECT_TRUE(Read(scraper).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(Ended(idle[0]));
  EXPECT_FALSE(Ended(idle[1]));
  EXPECT_EQ(listener_.connections(), Listener::kMostConnections);
}

TEST_F(MetricsListener, MakesASocketForItsOwnUserAlone) {
  struct stat file{};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST(MetricsListen, TakesThePlaceOfASocketThatWasLeft) {
  const os::TempDir dir = *os::TempDir::Create();
  const std::string path = dir.path() + "/new/m.sock";
  {
    ASSERT_TRUE(Listen(path));
  }
  const auto listening = Listen(path);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_TRUE(ConnectUnix(path));
}

// A path that is containerd's, by mistake.
TEST(MetricsListen, LeavesASocketThatSomebodyServes) {
  const os::TempDir dir = *os::TempDir::Create();
  const std::string path = dir.path() + "/others.sock";
  const auto others = ListenUnix(path);
  ASSERT_TRUE(others) << others.error().message;
  const auto listening = Listen(path);
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(listening.error().message.contains("another process does"));
  EXPECT_TRUE(ConnectUnix(path)) << "it is served still";
}

TEST(MetricsListen, LeavesWhatIsNoSocket) {
  const os::TempDir dir = *os::TempDir::Create();
  const std::string path = dir.path() + "/file";
  ASSERT_TRUE(ReplaceFile(path, "precious", 0600));
  const auto listening = Listen(path);
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(*ReadFile(path, 100), "precious");
}

/// A port that is free now.
uint16_t FreePort(int family) {
  const UniqueFd socket_fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage at{};
  at.ss_family = static_cast<sa_family_t>(family);
  socklen_t size = sizeof(at);
  EXPECT_EQ(bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
  EXPECT_EQ(getsockname(socket_fd.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  // The port is at the same place in both families.
  return ntohs(reinterpret_cast<sockaddr_in*>(&at)->sin_port);
}

TEST(MetricsListen, TakesAPortOfThisHostAloneAndSaysWhereItIsTaken) {
  const std::string address = Format("127.0.0.1:{}", FreePort(AF_INET));
  const auto listening = Listen(address);
  ASSERT_TRUE(listening) << listening.error().message;
  const auto again = Listen(address);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(again.error().message.contains(address)) << again.error().message;
  EXPECT_FALSE(Listen("0.0.0.0:9100"));
}

TEST(MetricsServer, AnswersFromAThreadOfItsOwn) {
  const os::TempDir dir = *os::TempDir::Create();
  const std::string path = dir.path() + "/m.sock";
  log::SetSinkForTest([](std::string_view) {});
  Server server({.address = path}, [](Pages::Done done) { done([] { return Moment(); }); });
  UniqueFd socket;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!socket && std::chrono::steady_clock::now() < deadline) {
    socket = ConnectUnix(path).value_or(UniqueFd());
    std::this_thread::yield();
  }
  ASSERT_TRUE(socket);
  const std::string get = "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(fcntl(socket.get(), F_SETFL, 0), 0);
  ASSERT_EQ(write(socket.get(), get.data(), get.size()), static_cast<ssize_t>(get.size()));
  std::string answer;
  char part[4096];
  for (ssize_t bytes = 1; bytes > 0;) {
    bytes = read(socket.get(), part, sizeof(part));
    answer.append(part, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  }
  EXPECT_TRUE(answer.contains("gantry_keeper_up 0\n")) << answer;
  log::SetSinkForTest({});
}

}  // namespace
}  // namespace gantry::metrics
