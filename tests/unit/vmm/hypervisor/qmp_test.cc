// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/qmp.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/unit/vmm/hypervisor/rigs.h"
#include "tests/vmm_doubles/qmp_server.h"

namespace gantry::vmm {
namespace {

using test::QmpFault;
using test::Returns;
using testing::HasSubstr;
using Json = nlohmann::json;

TEST(ParseQmp, KnowsMessagesApart) {
  const auto greeting = ParseQmp(R"({"QMP":{"version":{},"capabilities":[]}})");
  ASSERT_TRUE(greeting);
  EXPECT_EQ(greeting->kind, QmpMessage::Kind::kGreeting);
  const auto event = ParseQmp(R"({"event":"STOP","data":{"a":1},"timestamp":{}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, QmpMessage::Kind::kEvent);
  EXPECT_EQ(event->name, "STOP");
  const auto value = ParseQmp(R"({"return":{},"id":7})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->kind, QmpMessage::Kind::kReturn);
  EXPECT_EQ(value->id, 7U);
  const auto error = ParseQmp(R"({"error":{"class":"GenericError","desc":"no"},"id":8})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, QmpMessage::Kind::kError);
  EXPECT_EQ(error->text, "no");
}

TEST(ParseQmp, RefusesWhatIsNoMessage) {
  for (const char* line : {"", "{", "[]", "7", R"({"event":7})", R"({"error":7})", R"({"a":1})",
                           "\xff\xfe", R"({"return":{}} {"return":{}})"}) {
    const auto message = ParseQmp(line);
    ASSERT_FALSE(message) << line;
    EXPECT_EQ(message.error().code, Code::kDataLoss);
  }
  EXPECT_FALSE(ParseQmp(R"({"return":)" + std::string(1000, '[') + std::string(1000, ']') + "}"));
}

TEST(QmpLines, GivesWholeLinesAlone) {
  QmpLines lines(100);
  lines.buffer() = "one\r\ntw";
  EXPECT_EQ(lines.Next().value(), "one");
  EXPECT_EQ(lines.Next().value(), std::nullopt);
  lines.buffer() += "o\n\n";
  EXPECT_EQ(lines.Next().value(), "two");
  EXPECT_EQ(lines.Next().value(), "");
  EXPECT_EQ(lines.Next().value(), std::nullopt);
}

TEST(QmpLines, RefusesALineWithoutEnd) {
  QmpLines lines(100);
  lines.buffer() = std::string(101, 'x');
  EXPECT_FALSE(lines.Next());
  lines.buffer() = std::string(101, 'x') + "\n";
  EXPECT_FALSE(lines.Next());
}

class QmpTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/control"; }

  void SetUp() override {
    server_ = std::make_unique<test::QmpServer>(
        ListenUnix(Path()).value(), [](const Json& request, std::vector<UniqueFd>&) {
          return request["execute"] == "fail"
                     ? test::QmpError("DeviceNotFound", "Device 'x' not found")
                     : Returns({{"did", request["execute"]}});
        });
  }

  static bool Any(const QmpEvent&) { return true; }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::unique_ptr<test::QmpServer> server_;
  Qmp qmp_{Path()};
};

TEST_F(QmpTest, GreetsOnceAndAsks) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  const auto answer = qmp_.Execute("query-status", Json(), Soon());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ((*answer)["did"], "query-status");
  EXPECT_EQ(server_->Requests(), (std::vector<std::string>{R"({"execute":"qmp_capabilities"})",
                                                           R"({"execute":"query-status"})"}));
}

TEST_F(QmpTest, TellsWhatQemuSaid) {
  const auto answer = qmp_.Execute("fail", Json(), Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kNotFound);
  EXPECT_EQ(answer.error().message,
            "ask QEMU to 'fail': it answered DeviceNotFound: Device 'x' not found");
}

TEST_F(QmpTest, ThrowsAwayAnAnswerThatIsLate) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->FailNext("first", QmpFault::kLate);
  const auto late = qmp_.Execute("first", Json(), AtOnce());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDeadlineExceeded);
  for (const char* command : {"second", "third"}) {
    const auto answer = qmp_.Execute(command, Json(), Soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ((*answer)["did"], command);
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(QmpTest, ConnectsAnewWhenTheConnectionWasLost) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->FailNext("first", QmpFault::kHalf);
  const auto half = qmp_.Execute("first", Json(), Soon());
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, Code::kUnavailable);
  EXPECT_TRUE(qmp_.Execute("second", Json(), Soon()));
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(QmpTest, RefusesAnAnswerToNothing) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->FailNext("first", QmpFault::kBytes, "{\"return\":{},\"id\":999}\n");
  const auto answer = qmp_.Execute("first", Json(), Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kDataLoss);
}

TEST_F(QmpTest, RefusesALineWithoutEnd) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->FailNext("first", QmpFault::kBytes, std::string(kQmpLimits.bytes + 1, ' '));
  const auto answer = qmp_.Execute("first", Json(), Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kDataLoss);
  EXPECT_THAT(answer.error().message, HasSubstr("more than the 1048576 bytes"));
}

TEST_F(QmpTest, TakesEventsBetweenAnswers) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->Emit("DEVICE_DELETED", {{"device", "a"}});
  ASSERT_TRUE(qmp_.Execute("first", Json(), Soon()));
  server_->Emit("DEVICE_DELETED", {{"device", "b"}});
  const auto event =
      qmp_.Await("b", [](const QmpEvent& one) { return one.data["device"] == "b"; }, Soon());
  ASSERT_TRUE(event) << event.error().message;
  // The other one is there still.
  EXPECT_EQ(qmp_.Await("any", Any, Soon()).value().data["device"], "a");
}

TEST_F(QmpTest, KeepsAFewOfAFlood) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  for (int i = 0; i < 1000; ++i) {
    server_->Emit("RTC_CHANGE", {{"offset", i}});
    server_->Emit("DEVICE_DELETED", {{"device", std::to_string(i)}});
    if (i % 100 == 0) {
      ASSERT_TRUE(qmp_.Execute("read", Json(), Soon()));
    }
  }
  ASSERT_TRUE(qmp_.Execute("read", Json(), Soon()));
  EXPECT_EQ(qmp_.Await("the first", Any, Soon()).value().data["device"],
            std::to_string(1000 - Qmp::kMaxEvents));
  EXPECT_EQ(qmp_.Newest("DEVICE_DELETED").value().data["device"], "999");
  EXPECT_FALSE(qmp_.Newest("RTC_CHANGE"));
}

TEST_F(QmpTest, SaysThatAnEventHasNotCome) {
  const auto event = qmp_.Await("what never comes", Any, AtOnce());
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Code::kDeadlineExceeded);
  EXPECT_THAT(event.error().message, HasSubstr("await what never comes"));
}

TEST_F(QmpTest, WhoWaitsForAnEventHoldsUpNobody) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  std::atomic<bool> came = false;
  std::thread waits([&] { came = qmp_.Await("DEVICE_DELETED", Any, Soon()).has_value(); });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(qmp_.Execute("other", Json(), Soon()));
  }
  server_->Emit("DEVICE_DELETED", {{"device", "a"}});
  waits.join();
  EXPECT_TRUE(came);
}

TEST_F(QmpTest, TellsWhoWaitsOfAnEventThatAnotherHasRead) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  std::vector<std::thread> all;
  std::atomic<int> came = 0;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      const std::string id = std::to_string(i);
      came += qmp_.Await(
                  "mine", [&](const QmpEvent& one) { return one.data["device"] == id; }, Soon())
                  ? 1
                  : 0;
    });
  }
  for (int i = 0; i < 8; ++i) {
    server_->Emit("DEVICE_DELETED", {{"device", std::to_string(i)}});
    ASSERT_TRUE(qmp_.Execute("other", Json(), Soon()));
  }
  for (std::thread& one : all) {
    one.join();
  }
  EXPECT_EQ(came, 8);
}

TEST_F(QmpTest, TellsWhoWaitsThatQemuHasGone) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  std::thread ends([&] { server_->CutOff(); });
  const auto event = qmp_.Await("what never comes", Any, Soon());
  ends.join();
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Code::kUnavailable);
}

TEST_F(QmpTest, KnowsTheLastWordsOfOneThatHasGone) {
  ASSERT_TRUE(qmp_.Connect(Soon(), nullptr));
  server_->Emit("SHUTDOWN", {{"guest", true}, {"reason", "guest-reset"}});
  server_.reset();
  const auto last = qmp_.Newest("SHUTDOWN");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->data["reason"], "guest-reset");
}

TEST_F(QmpTest, IsNotTakenInByAnotherServer) {
  server_.reset();
  os::TempDir folder = os::TempDir::Create().value();
  const std::string path = folder.path() + "/control";
  const UniqueFd listener = ListenUnix(path).value();
  std::thread other([&] {
    std::optional<UniqueFd> accepted;
    while (!accepted) {
      accepted = AcceptUnix(listener.get()).value();
    }
    SendWithFds(accepted->get(), std::string_view("{\"return\":{}}\n"), {}).value();
  });
  Qmp qmp(path);
  const Status connected = qmp.Connect(Soon(), nullptr);
  other.join();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kDataLoss);
  EXPECT_THAT(connected.error().message, HasSubstr("is no QEMU monitor"));
}

}  // namespace
}  // namespace gantry::vmm
