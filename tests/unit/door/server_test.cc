// SPDX-License-Identifier: Apache-2.0
//
// The server with gRPC's own client at the other end of a socket pair.
#include "core/door/server.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/rpc/ttrpc.h"
#include "tests/unit/async/loop_driver.h"

namespace gantry::door {
namespace {

/// One call of a client, which tells when it has been answered.
class ClientCall final : public ::grpc::ClientUnaryReactor {
 public:
  ClientCall(::grpc::GenericStub& stub, const std::string& method, const std::string& request,
             std::chrono::milliseconds limit = {}) {
    context_.AddMetadata("containerd-namespace", "k8s.io");
    context_.AddMetadata("traceparent", "00-1-2-01");
    if (limit.count() > 0) {
      context_.set_deadline(std::chrono::system_clock::now() + limit);
    }
    const ::grpc::Slice slice(request);
    request_ = ::grpc::ByteBuffer(&slice, 1);
    stub.PrepareUnaryCall(&context_, method, {}, &request_, &response_, this);
    StartCall();
  }

  void OnDone(const ::grpc::Status& status) override {
    status_ = status;
    done_ = true;
  }

  void Cancel() { context_.TryCancel(); }

  bool done() const { return done_; }

  const ::grpc::Status& status() const { return status_; }

  std::string response() const {
    std::vector<::grpc::Slice> slices;
    std::string text;
    if (response_.Dump(&slices).ok()) {
      for (const ::grpc::Slice& slice : slices) {
        text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
    }
    return text;
  }

 private:
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer request_;
  ::grpc::ByteBuffer response_;
  ::grpc::Status status_;
  std::atomic<bool> done_ = false;
};

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    Add("Echo", [](rpc::Call call) -> async::Task<Result<std::string>> { co_return call.payload; });
    Add("Who", [](rpc::Call call) -> async::Task<Result<std::string>> {
      co_return call.ns + "|" + std::string(rpc::FindMetadata(call.metadata, "traceparent")) + "|" +
          (call.timeout.count() > 0 ? "limit" : "no limit");
    });
    Add("Refuse", [](rpc::Call) -> async::Task<Result<std::string>> {
      co_return Fail(Code::kFailedPrecondition, "it is stopped");
    });
    Add("Wait", [this](rpc::Call call) -> async::Task<Result<std::string>> {
      ++waiting_;
      async::OneShot<std::string> end = end_;
      call.abandonment->Notify([this, end]() mutable {
        ++abandoned_;
        end.Set("abandoned");
      });
      co_return co_await end.Wait();
    });
    auto server = Server::Start(loop_, table_, streams_, {});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    channel_ = Connect();
    stub_ = std::make_unique<::grpc::GenericStub>(channel_);
  }

  void TearDown() override {
    stub_.reset();
    channel_.reset();
    end_.Set("end");
    test::RunAllReady(loop_);
    server_.reset();
    test::RunAllReady(loop_);
  }

  /// Another client, as it were.
  std::shared_ptr<::grpc::Channel> Connect() {
    auto pair = UnixSocketPair();
    EXPECT_TRUE(pair) << pair.error().message;
    server_->Take(std::move(pair->first));
    return ::grpc::CreateInsecureChannelFromFd("gantry", pair->second.release());
  }

  void Add(const std::string& method, rpc::Handler handler) {
    ASSERT_TRUE(table_.Add("t.Test", method, std::move(handler)));
  }

  /// To its end.
  void Finish(const ClientCall& call) {
    ASSERT_TRUE(test::RunUntil(loop_, [&] { return call.done(); }));
  }

  async::Loop loop_;
  rpc::MethodTable table_;
  StreamTable streams_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<::grpc::Channel> channel_;
  std::unique_ptr<::grpc::GenericStub> stub_;
  async::OneShot<std::string> end_;
  int waiting_ = 0;
  int abandoned_ = 0;
};

TEST_F(ServerTest, AnswersByTheTable) {
  ClientCall call(*stub_, "/t.Test/Echo", "said");
  Finish(call);
  EXPECT_TRUE(call.status().ok()) << call.status().error_message();
  EXPECT_EQ(call.response(), "said");
}

/// What of gRPC's library is mapped, in KiB. Source: proc(5), smaps.
size_t GrpcKib() {
  std::ifstream maps("/proc/self/smaps");
  size_t kib = 0;
  bool of_grpc = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.contains(" /")) {
      of_grpc = line.contains("/libgrpc.so");
    } else if (of_grpc && line.starts_with("Rss:")) {
      kib += std::stoul(line.substr(line.find(':') + 1));
    }
  }
  return kib;
}

TEST_F(ServerTest, GivesGrpcsCodeBackWhenNothingHappens) {
  ClientCall call(*stub_, "/t.Test/Echo", "said");
  Finish(call);
  const size_t used = GrpcKib();
  EXPECT_GT(used, 0U);
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return GrpcKib() < used / 2; })) << used << " KiB";
}

TEST_F(ServerTest, CarriesMegabytes) {
  const std::string much(size_t{3} << 20, 'x');
  ClientCall call(*stub_, "/t.Test/Echo", much);
  Finish(call);
  EXPECT_TRUE(call.status().ok()) << call.status().error_message();
  EXPECT_EQ(call.response(), much);
}

TEST_F(ServerTest, RefusesWhatIsTooLarge) {
  ClientCall call(*stub_, "/t.Test/Echo", std::string(size_t{5} << 20, 'x'));
  Finish(call);
  EXPECT_EQ(call.status().error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, TellsTheNamespaceTheMetadataAndTheDeadline) {
  ClientCall plain(*stub_, "/t.Test/Who", "");
  ClientCall limited(*stub_, "/t.Test/Who", "", std::chrono::minutes(1));
  Finish(plain);
  Finish(limited);
  EXPECT_EQ(plain.response(), "k8s.io|00-1-2-01|no limit");
  EXPECT_EQ(limited.response(), "k8s.io|00-1-2-01|limit");
}

TEST_F(ServerTest, TellsErrorsWithTheirCode) {
  ClientCall call(*stub_, "/t.Test/Refuse", "");
  Finish(call);
  EXPECT_EQ(call.status().error_code(), ::grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(call.status().error_message(), "it is stopped");
}

TEST_F(ServerTest, DoesNotImplementWhatIsNotInTheTable) {
  for (const char* method : {"/t.Test/None", "/t.None/Echo", "/", "//", "/t.Test/"}) {
    ClientCall call(*stub_, method, "");
    Finish(call);
    EXPECT_FALSE(call.status().ok()) << method;
  }
  ClientCall call(*stub_, "/t.Test/None", "");
  Finish(call);
  EXPECT_EQ(call.status().error_code(), ::grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, TellsAHandlerThatItsCallerHasGone) {
  ClientCall call(*stub_, "/t.Test/Wait", "");
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ == 1; }));
  EXPECT_TRUE(server_->IsBusy());
  call.Cancel();
  Finish(call);
  EXPECT_EQ(call.status().error_code(), ::grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(test::RunUntil(loop_, [&] { return abandoned_ == 1; }));
  EXPECT_FALSE(server_->IsBusy());
}

TEST_F(ServerTest, AnswersManyAtOnce) {
  constexpr size_t kCalls = 500;
  std::vector<std::unique_ptr<ClientCall>> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<ClientCall>(*stub_, "/t.Test/Wait", ""));
  }
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ == static_cast<int>(kCalls); }));
  end_.Set("end");
  for (const auto& call : calls) {
    Finish(*call);
    EXPECT_EQ(call->response(), "end");
  }
}

TEST_F(ServerTest, LetsCallsBeyondAClientsLimitWaitAndServesAnotherMeanwhile) {
  constexpr size_t kCalls = 10000;
  std::vector<std::unique_ptr<ClientCall>> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<ClientCall>(*stub_, "/t.Test/Wait", ""));
  }
  const int limit = ServerLimits().calls_per_connection;
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return waiting_ == limit; }));
  const auto other = Connect();
  ::grpc::GenericStub stub(other);
  ClientCall echo(stub, "/t.Test/Echo", "said");
  Finish(echo);
  EXPECT_EQ(echo.response(), "said");
  EXPECT_EQ(waiting_, limit) << "the others are not begun";
  end_.Set("end");
  for (const auto& call : calls) {
    Finish(*call);
    EXPECT_EQ(call->response(), "end");
  }
  EXPECT_EQ(waiting_, static_cast<int>(kCalls));
}

/// A frame of HTTP/2. Source: RFC 9113, 4.1.
std::string FrameOf(char type, char flags, uint32_t stream, const std::string& payload) {
  std::string frame;
  const auto number = [&frame](uint32_t value, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
      frame += static_cast<char>(value >> shift & 0xff);
    }
  };
  number(static_cast<uint32_t>(payload.size()), 3);
  frame += type;
  frame += flags;
  number(stream, 4);
  return frame + payload;
}

/// What no entry of HPACK's tables stands for. Source: RFC 7541, 5.2 and 6.2.2.
std::string Text(const std::string& text) { return static_cast<char>(text.size()) + text; }

/// A client that asks `count` times, takes no answer, and allows none to be sent.
std::string CallsThatTakeNoAnswer(uint32_t count) {
  // SETTINGS_INITIAL_WINDOW_SIZE: 0.
  std::string all =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + FrameOf(4, 0, 0, std::string("\0\4\0\0\0\0", 6));
  const std::string head = "\x83\x86\x04" + Text("/t.Test/Count") + "\x01" + Text("x") +
                           std::string(1, '\0') + Text("te") + Text("trailers") + "\x0f\x10" +
                           Text("application/grpc");
  const std::string body = std::string("\0\0\0\1\0", 5) + std::string(256, 'b');
  for (uint32_t stream = 1; stream < 2 * count; stream += 2) {
    all += FrameOf(1, 4, stream, head) + FrameOf(0, 1, stream, body);
  }
  return all;
}

TEST_F(ServerTest, IsNotHeldUpByWhoTakesNoAnswers) {
  constexpr uint32_t kCalls = 200;
  int begun = 0;
  Add("Count", [&begun](rpc::Call) -> async::Task<Result<std::string>> {
    ++begun;
    co_return std::string(65536, 'c');
  });
  auto pair = UnixSocketPair();
  ASSERT_TRUE(pair);
  server_->Take(std::move(pair->first));
  ASSERT_TRUE(SendWithFds(pair->second.get(), CallsThatTakeNoAnswer(kCalls), {}));
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return begun == static_cast<int>(kCalls); }));
  for (int i = 0; i < 3; ++i) {
    ClientCall call(*stub_, "/t.Test/Echo", "said");
    Finish(call);
    EXPECT_EQ(call.response(), "said");
  }
  pair->second.reset();
  ClientCall call(*stub_, "/t.Test/Echo", "said");
  Finish(call);
  EXPECT_EQ(call.response(), "said");
}

TEST_F(ServerTest, IsHealthy) {
  ClientCall call(*stub_, "/grpc.health.v1.Health/Check", "");
  Finish(call);
  EXPECT_TRUE(call.status().ok()) << call.status().error_message();
  // HealthCheckResponse{status: SERVING}.
  EXPECT_EQ(call.response(), std::string("\x08\x01", 2));
}

TEST_F(ServerTest, IsHealthyServiceByService) {
  // HealthCheckRequest{service}.
  ClientCall known(*stub_, "/grpc.health.v1.Health/Check", "\x0a\x06t.Test");
  ClientCall other(*stub_, "/grpc.health.v1.Health/Check", "\x0a\x06t.None");
  Finish(known);
  Finish(other);
  EXPECT_EQ(known.response(), std::string("\x08\x01", 2));
  EXPECT_EQ(other.status().error_code(), ::grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, ClosesAConnectionOfSomethingElse) {
  auto pair = UnixSocketPair();
  ASSERT_TRUE(pair);
  server_->Take(std::move(pair->first));
  const std::string noise(4096, 'z');
  ASSERT_TRUE(SendWithFds(pair->second.get(), noise, {}));
  char buffer[4096];
  ASSERT_TRUE(test::RunUntil(loop_, [&] {
    std::vector<UniqueFd> fds;
    const auto got = RecvWithFds(pair->second.get(), buffer, fds);
    return !got || got->end;
  }));
  ClientCall call(*stub_, "/t.Test/Echo", "said");
  Finish(call);
  EXPECT_EQ(call.response(), "said");
}

}  // namespace
}  // namespace gantry::door
