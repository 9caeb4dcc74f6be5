// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "core/os/fs.h"
#include "tests/unit/gvisor/fake_sentry.h"

namespace gantry::urpc {
namespace {

size_t OpenDescriptors() {
  return static_cast<size_t>(
      std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd")));
}

class ConnectionTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/control.sock"; }

  /// One call to a sentry that answers like this.
  Outcome<Answer> CallOne(const FakeSentry::Handler& handler, const Request& request) {
    const FakeSentry sentry(Path(), handler);
    Outcome<Connection> connection = Connection::Open(Path(), Soon());
    if (!connection) {
      return std::unexpected(connection.error());
    }
    if (auto sent = connection->Send(request, Soon()); !sent) {
      return std::unexpected(sent.error());
    }
    return connection->Receive(request.method, Soon(), request.max_answer);
  }

  Outcome<Answer> CallWithAnswer(const std::string& bytes, bool then_close = false) {
    return CallOne([&](const Json&, auto&) { return FakeAnswer{bytes, {}, then_close}; },
                   {.method = "T.M"});
  }

  os::TempDir folder_ = os::TempDir::Create().value();
};

TEST_F(ConnectionTest, CarriesARequestAndItsAnswer) {
  Json seen;
  const auto answer = CallOne(
      [&](const Json& request, auto&) {
        seen = request;
        return FakeAnswer::Of({{"pid", 7}});
      },
      {.method = "containerManager.Wait", .arg = R"("k1")"});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->result, R"({"pid":7})");
  EXPECT_EQ(seen, Json::parse(R"({"method":"containerManager.Wait","arg":"k1"})"));
}

TEST_F(ConnectionTest, CarriesDescriptors) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  const auto answer = CallOne(
      [](const Json&, std::vector<UniqueFd>& fds) {
        EXPECT_EQ(write(fds.at(1).get(), "x", 1), 1);
        return FakeAnswer::Of(fds.size());
      },
      {.method = "T.M", .fds = std::array{writer.get(), writer.get()}});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->result, "2");
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 1);
}

/// To close one may take as long as a file system of its owner's likes.
TEST_F(ConnectionTest, TakesNoDescriptorsFromASentry) {
  const os::TempDir folder = os::TempDir::Create().value();
  const UniqueFd sent(dup(STDERR_FILENO));
  const size_t before = OpenDescriptors();
  const FakeSentry sentry(folder.path() + "/s", [&sent](const Json&, auto&) {
    FakeAnswer back = FakeAnswer::Of(1);
    back.fds.assign(kMaxFds, sent.get());
    return back;
  });
  auto connection = Connection::Open(folder.path() + "/s", Soon());
  ASSERT_TRUE(connection && connection->Send({.method = "T.M"}, Soon()));
  const auto answer = connection->Receive("T.M", Soon());
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->result, "1");
  // Its listener and both ends of the connection.
  EXPECT_LE(OpenDescriptors(), before + 3);
}

TEST_F(ConnectionTest, CarriesWhatIsLargerThanABuffer) {
  const std::string large(size_t{3} << 20, 'x');
  const auto answer =
      CallOne([](const Json& request, auto&) { return FakeAnswer::Of(request["arg"]); },
              {.method = "T.M", .arg = Json(large).dump(), .max_answer = size_t{4} << 20});
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->result, Json(large).dump());
}

TEST_F(ConnectionTest, SendsNoMoreDescriptorsThanAreSeen) {
  const std::vector<int> many(kMaxFds + 1, 0);
  const auto answer = CallOne([](const Json&, auto&) { return FakeAnswer::Of(nullptr); },
                              {.method = "T.M", .fds = many});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().cause, Cause::kLocal);
}

TEST_F(ConnectionTest, TellsARefusalFromAWorkloadThatCannotRun) {
  const auto refused =
      CallOne([](const Json&, auto&) { return FakeAnswer::Refusing(R"(container "x" not found)"); },
              {.method = "T.M"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, Cause::kRefused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  const auto cannot_run = CallOne(
      [](const Json&, auto&) { return FakeAnswer::Refusing("failed to load /no: no such file"); },
      {.method = "T.M"});
  ASSERT_FALSE(cannot_run);
  EXPECT_EQ(cannot_run.error().cause, Cause::kWorkload);
}

TEST_F(ConnectionTest, SaysWhatIsNoAnswer) {
  for (const std::string bytes : {"[]", "7", "{\"success\":1}", "{}", "{nonsense}"}) {
    const auto answer = CallWithAnswer(bytes);
    ASSERT_FALSE(answer) << bytes;
    EXPECT_EQ(answer.error().cause, Cause::kProtocol) << bytes;
  }
}

TEST_F(ConnectionTest, TakesAnAnswerThatIsTooLongForNone) {
  const auto answer = CallWithAnswer("{\"result\":\"" + std::string(kMaxAnswerBytes, 'x') + "\"}");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().cause, Cause::kProtocol);
}

TEST_F(ConnectionTest, SaysThatTheSentryLeft) {
  for (const std::string half : {"", "{\"succ", "{\"success\":true,\"err\":\"\""}) {
    const auto answer = CallWithAnswer(half, true);
    ASSERT_FALSE(answer) << half;
    EXPECT_EQ(answer.error().cause, Cause::kGone) << half;
    EXPECT_EQ(answer.error().code, Code::kUnavailable);
  }
}

TEST_F(ConnectionTest, WaitsNoLongerThanItMay) {
  std::promise<void> done;
  const FakeSentry sentry(Path(), [until = done.get_future().share()](const Json&, auto&) {
    until.wait();
    return FakeAnswer::Of(nullptr);
  });
  auto connection = Connection::Open(Path(), Soon());
  ASSERT_TRUE(connection);
  ASSERT_TRUE(connection->Send({.method = "T.M"}, Soon()));
  const auto answer = connection->Receive("T.M", std::chrono::steady_clock::now());
  done.set_value();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().cause, Cause::kDeadline);
  EXPECT_EQ(answer.error().code, Code::kDeadlineExceeded);
}

TEST_F(ConnectionTest, SaysThatNobodyIsThere) {
  const auto none = Connection::Open(Path(), Soon());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().cause, Cause::kGone);
  {
    const FakeSentry sentry(Path(), {});
  }
  const auto refused = Connection::Open(Path(), Soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, Cause::kGone);
}

TEST_F(ConnectionTest, ReachesAPathThatIsTooLongForAnAddress) {
  const std::string folder = folder_.path() + "/" + std::string(120, 'd');
  std::filesystem::create_directory(folder);
  const FakeSentry sentry(folder + "/s", [](const Json&, auto&) { return FakeAnswer::Of(1); });
  EXPECT_TRUE(Connection::Open(folder + "/s", Soon()));
  const auto named = Connection::Open(folder_.path() + "/" + std::string(120, 'n'), Soon());
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().sys_errno, ENAMETOOLONG);
}

TEST_F(ConnectionTest, ShowsTheFirstOfTwoAnswers) {
  std::string both = FakeAnswer::Of(0x700).bytes + FakeAnswer::Refusing("no such process").bytes;
  const FakeSentry sentry(Path(), [&](const Json&, auto&) { return FakeAnswer{both, {}, true}; });
  auto connection = Connection::Open(Path(), Soon());
  ASSERT_TRUE(connection);
  ASSERT_TRUE(connection->Send({.method = "containerManager.WaitPID"}, Soon()));
  for (int i = 0; i < 2; ++i) {
    const auto answer = connection->Peek("containerManager.WaitPID", Soon());
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(answer->result, "1792");
  }
}

TEST_F(ConnectionTest, ItsAnswerWaitsForWhoeverHoldsIt) {
  std::promise<void> ends;
  auto end = ends.get_future().share();
  const FakeSentry sentry(Path(), [&](const Json&, auto&) {
    end.wait();
    return FakeAnswer::Of(0x700);
  });
  auto first = Connection::Open(Path(), Soon());
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->Send({.method = "containerManager.WaitPID"}, Soon()));
  UniqueFd kept = first->fd().Duplicate().value_or(UniqueFd());
  first = std::unexpected(Failure{});
  ends.set_value();
  Connection second(std::move(kept));
  const auto answer = second.Receive("containerManager.WaitPID", Soon());
  ASSERT_TRUE(answer) << answer.error().text;
  EXPECT_EQ(answer->result, "1792");
}

}  // namespace
}  // namespace gantry::urpc
