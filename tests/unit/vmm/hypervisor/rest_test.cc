// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/rest/rest.h"

#include <sys/stat.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/host_process.h>

#include "tests/unit/vmm/hypervisor/rigs.h"
#include "tests/vmm_doubles/rest_server.h"

namespace gantry::vmm {
namespace {

using test::RestCall;
using test::RestFault;
using test::RestReply;
using testing::HasSubstr;
using Json = nlohmann::json;

class RestTest : public testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/api.sock"; }

  void Serve(test::RestServer::Handler handler) {
    server_ = std::make_unique<test::RestServer>(Path(), std::move(handler));
  }

  Error Fails(const Status& status) {
    EXPECT_FALSE(status);
    return status ? Error() : status.error();
  }

  os::TempDir folder_ = os::TempDir::Create().value();
  std::unique_ptr<test::RestServer> server_;
  Rest rest_{{.vmm = "Some VMM",
              .words = [](const Json& body) { return body.value("why", std::string()); }},
             Path()};
};

TEST_F(RestTest, GivesWhatIsAnswered) {
  Serve([](RestCall& call) { return RestReply{200, Json{{"target", call.target}}.dump()}; });
  const auto answer = rest_.Get("/a", Soon());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, Json({{"target", "/a"}}));
}

TEST_F(RestTest, SendsDescriptorsAlong) {
  struct stat sent{};
  ASSERT_EQ(stat("/dev/null", &sent), 0);
  std::atomic<int> same = 0;
  Serve([&](RestCall& call) {
    struct stat got{};
    if (call.fds.size() == 1 && fstat(call.fds[0].get(), &got) == 0 &&
        got.st_rdev == sent.st_rdev) {
      ++same;
    }
    return RestReply{};
  });
  const UniqueFd null = SomeFd();
  const int fd = null.get();
  EXPECT_TRUE(rest_.Put("/tap", {{"a", std::string(100'000, 'x')}}, Soon(), std::span(&fd, 1)));
  EXPECT_EQ(same, 1);
}

TEST_F(RestTest, TellsWhichVmmWhichRequestAndWhatItSaid) {
  Serve([](RestCall&) { return RestReply{500, R"({"why":"no\nspace"})"}; });
  const Error error = Fails(rest_.Put("/vm.boot", Json(), Soon()));
  EXPECT_EQ(error.code, Code::kInternal);
  EXPECT_EQ(error.message, "ask Some VMM to 'PUT /vm.boot': it answered 500: no space");
}

TEST_F(RestTest, TellsWhatAStatusMeans) {
  std::atomic<int> status = 400;
  Serve([&](RestCall&) { return RestReply{status, "[]"}; });
  const std::vector<std::pair<int, Code>> all = {
      {400, Code::kInvalidArgument}, {404, Code::kNotFound},    {405, Code::kFailedPrecondition},
      {409, Code::kAlreadyExists},   {429, Code::kUnavailable}, {418, Code::kInternal}};
  for (const auto& [answered, code] : all) {
    status = answered;
    Rest rest({.vmm = "V", .words = [](const Json&) { return std::string(); }}, Path());
    EXPECT_EQ(Fails(rest.Put("/x", Json(), Soon())).code, code) << answered;
  }
}

TEST_F(RestTest, ReadsAnAnswerInPieces) {
  Serve([](RestCall&) { return RestReply{200, R"({"a":1})"}; });
  server_->FailNext("/a", RestFault::kPiecemeal);
  EXPECT_TRUE(rest_.Get("/a", Soon()));
}

TEST_F(RestTest, SaysThatAnAnswerIsHalf) {
  Serve([](RestCall&) { return RestReply{200, R"({"a":1})"}; });
  server_->FailNext("/a", RestFault::kHalf);
  const auto answer = rest_.Get("/a", Soon());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
}

TEST_F(RestTest, RefusesADeepAnswer) {
  Serve([](RestCall&) { return RestReply{200, std::string(60'000, '[')}; });
  const auto deep = rest_.Get("/a", Soon());
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, Code::kDataLoss);
  EXPECT_THAT(deep.error().message, HasSubstr("nested deeper than 32 levels"));
}

TEST_F(RestTest, RefusesAWideAnswer) {
  Serve([](RestCall&) {
    std::string body = "[0";
    while (body.size() < 100'000) {
      body += ",0";
    }
    return RestReply{200, body + "]"};
  });
  const auto wide = rest_.Get("/a", Soon());
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().code, Code::kDataLoss);
}

TEST_F(RestTest, TakesNothingFromWordsThatAreNone) {
  Serve([](RestCall&) { return RestReply{500, std::string(50'000, '[')}; });
  const Error error = Fails(rest_.Put("/x", Json(), Soon()));
  EXPECT_EQ(error.message, "ask Some VMM to 'PUT /x': it answered 500");
}

TEST_F(RestTest, HasOneRequestAtATimeOnTheSocket) {
  Serve([](RestCall&) { return RestReply{}; });
  std::vector<std::thread> threads;
  std::atomic<int> done = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        done += rest_.Put("/x", Json(), Soon()) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(done, 160);
  EXPECT_EQ(server_->MostAtOnce(), 1);
}

TEST_F(RestTest, WhoWaitsForHisTurnGivesUpInTime) {
  Serve([](RestCall&) { return RestReply{}; });
  server_->FailNext("/slow", RestFault::kHang);
  std::thread slow([&] { IgnoreError(rest_.Put("/slow", Json(), Soon()), "cut off below"); });
  while (server_->Requests().empty()) {
    std::this_thread::yield();
  }
  const Error error = Fails(rest_.Put("/quick", Json(), AtOnce()));
  EXPECT_EQ(error.code, Code::kDeadlineExceeded);
  EXPECT_THAT(error.message, HasSubstr("another request to this VMM is under way"));
  server_.reset();
  slow.join();
}

TEST_F(RestTest, WaitsNoLongerForAVmmThatHasEnded) {
  auto process = RunShell("exit 3");
  ASSERT_TRUE(process);
  ASSERT_TRUE((*process)->Wait(std::chrono::seconds(60)));
  const Error error = Fails(rest_.Await(Soon(), process->get()));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("Some VMM ended with 3 before it listened"));
}

}  // namespace
}  // namespace gantry::vmm
