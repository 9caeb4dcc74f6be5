// SPDX-License-Identifier: Apache-2.0
//
// The controller between a caller and a sandbox's socket: what it makes, says to the keeper, asks
// of the sandbox's own service, and undoes.
#include "core/door/controller.h"

#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/files/files.h>

#include "core/log/log.h"
#include "core/os/fs.h"
#include "core/rpc/typed.h"
#include "proto/containerd/sandbox.pb.h"
#include "tests/unit/async/loop_driver.h"
#include "tests/unit/door/fake_keeper.h"
#include "tests/unit/rpc/fake_server.h"

namespace gantry::door {
namespace {

namespace sandbox_pb = containerd::runtime::sandbox::v1;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kController[] = "containerd.services.sandbox.v1.Controller";

TEST(HandlerOfRuntime, IsInItsName) {
  EXPECT_EQ(*HandlerOfRuntime("io.containerd.gantry.v1"), "");
  EXPECT_EQ(*HandlerOfRuntime("io.containerd.gantry-wasm.v1"), "wasm");
  EXPECT_EQ(*HandlerOfRuntime("io.containerd.gantry-my-vm.v1"), "my-vm");
  EXPECT_EQ(*HandlerOfRuntime("/usr/bin/containerd-shim-gantry-v1"), "");
  EXPECT_EQ(*HandlerOfRuntime("/usr/bin/containerd-shim-gantry-wasm-v1"), "wasm");
}

TEST(HandlerOfRuntime, OfOthersIsRefused) {
  for (const char* name : {"", "io.containerd.runc.v2", "gantry-", "io.containerd.gantryx.v1"}) {
    const auto handler = HandlerOfRuntime(name);
    ASSERT_FALSE(handler) << name;
    EXPECT_EQ(handler.error().code, Code::kInvalidArgument);
    EXPECT_THAT(handler.error().message, HasSubstr("io.containerd.gantry.v1"));
  }
}

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    log::SetSinkForTest([](std::string_view) {});
    sandbox_.Listen(socket_);
    sandbox_.on_request = [this](const test::FakeServer::Received& received) {
      methods_.push_back(received.request.method);
      if (held_ != received.request.method) {
        const auto found = answers_.find(received.request.method);
        sandbox_.Answer(received, found == answers_.end() ? std::string() : found->second);
      }
    };
  }

  ~ControllerTest() override {
    sandbox_.GoAway();
    test::Settle(loop_, pool_);
    log::SetSinkForTest({});
  }

  void SetUp() override { ASSERT_TRUE(controller_.Register(table_)); }

  template <class Response, class Request>
  Result<Response> Call(
      const char* method, const Request& request,
      std::shared_ptr<rpc::Abandonment> abandonment = std::make_shared<rpc::Abandonment>()) {
    rpc::Call call;
    call.service = kController;
    call.method = method;
    call.ns = "k8s.io";
    call.payload = request.SerializeAsString();
    call.abandonment = std::move(abandonment);
    call.metadata = metadata_;
    GANTRY_TRY(const rpc::Handler* const handler, table_.Find(kController, method));
    GANTRY_TRY(const std::string bytes, test::Await(loop_, (*handler)(std::move(call))));
    Response response;
    GANTRY_CHECK_OK(rpc::ParseMessage(bytes, response));
    return response;
  }

  static controller_pb::ControllerCreateRequest CreateRequest() {
    controller_pb::ControllerCreateRequest request;
    request.set_sandbox_id("p1");
    request.set_netns_path("/run/netns/1");
    request.mutable_options()->set_type_url("runtime.v1.PodSandboxConfig");
    request.mutable_options()->set_value("config");
    request.mutable_sandbox()->mutable_runtime()->set_name("io.containerd.gantry-wasm.v1");
    request.mutable_sandbox()->mutable_runtime()->mutable_options()->set_type_url("options");
    return request;
  }

  auto Create() { return Call<controller_pb::ControllerCreateResponse>("Create", CreateRequest()); }

  auto Start() {
    controller_pb::ControllerStartRequest request;
    request.set_sandbox_id("p1");
    return Call<controller_pb::ControllerStartResponse>("Start", request);
  }

  auto Shutdown() {
    controller_pb::ControllerShutdownRequest request;
    request.set_sandbox_id("p1");
    return Call<controller_pb::ControllerShutdownResponse>("Shutdown", request);
  }

  bool HasFolder() const { return Exists(folders_.PathOf({"k8s.io", "p1"})); }

  template <class T>
  T Sent(size_t number) const {
    T message;
    EXPECT_TRUE(message.ParseFromString(sandbox_.requests.at(number).request.payload));
    return message;
  }

  const os::TempDir dir_ = *os::TempDir::Create();
  const std::string socket_ = dir_.path() + "/sandbox";
  async::Loop loop_;
  async::WorkerPool pool_{loop_, 2, 100};
  test::FakeServer sandbox_{loop_};
  test::FakeKeeper keeper_{dir_.path(), socket_};
  const Folders folders_{dir_.path() + "/sandboxes"};
  Controller controller_{loop_, pool_, folders_, {dir_.path(), "/c.sock", "/c.sock.ttrpc"}};
  rpc::MethodTable table_;
  /// By method; others are answered with an empty message.
  std::map<std::string, Result<std::string>> answers_;
  /// This one is not answered.
  std::string held_;
  std::vector<std::string> methods_;
  /// What callers say beside their requests.
  rpc::Metadata metadata_;
};

TEST_F(ControllerTest, CreatesAsTheShimDoes) {
  const auto created = Create();
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->sandbox_id(), "p1");
  const auto announced = keeper_.announced();
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0].id, "p1");
  EXPECT_EQ(announced[0].ns, "k8s.io");
  EXPECT_EQ(announced[0].handler, "wasm");
  EXPECT_EQ(announced[0].options_type_url, "options");
  EXPECT_EQ(announced[0].grpc_address, "/c.sock");
  EXPECT_EQ(announced[0].ttrpc_address, "/c.sock.ttrpc");
  EXPECT_EQ(announced[0].bundle, folders_.PathOf({"k8s.io", "p1"}));
  const auto sent = Sent<sandbox_pb::CreateSandboxRequest>(0);
  EXPECT_EQ(sent.sandbox_id(), "p1");
  EXPECT_EQ(sent.bundle_path(), announced[0].bundle);
  EXPECT_EQ(sent.netns_path(), "/run/netns/1");
  EXPECT_EQ(sent.options().value(), "config");
}

TEST_F(ControllerTest, PassesTheTraceOn) {
  metadata_ = {{"traceparent", "00-1-2-01"}, {"tracestate", "a=b"}, {"other", "x"}};
  ASSERT_TRUE(Create());
  ASSERT_TRUE(Start());
  ASSERT_FALSE(sandbox_.requests.empty());
  for (const auto& received : sandbox_.requests) {
    EXPECT_EQ(received.request.metadata,
              (rpc::Metadata{{"traceparent", "00-1-2-01"}, {"tracestate", "a=b"}}))
        << received.request.method;
  }
}

TEST_F(ControllerTest, CreatesOnce) {
  ASSERT_TRUE(Create());
  const auto again = Create();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
  EXPECT_TRUE(HasFolder());
}

TEST_F(ControllerTest, RefusesAForeignRuntime) {
  auto request = CreateRequest();
  request.mutable_sandbox()->mutable_runtime()->set_name("io.containerd.runc.v2");
  const auto created = Call<controller_pb::ControllerCreateResponse>("Create", request);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Code::kInvalidArgument);
  EXPECT_TRUE(keeper_.announced().empty());
}

TEST_F(ControllerTest, UndoesACreateThatFails) {
  answers_["CreateSandbox"] = Fail(Code::kFailedPrecondition, "no kernel");
  const auto created = Create();
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Code::kFailedPrecondition);
  EXPECT_EQ(created.error().message, "no kernel");
  EXPECT_EQ(keeper_.deleted().size(), 1U);
  EXPECT_FALSE(HasFolder());
}

TEST_F(ControllerTest, TellsWhereTheTasksAre) {
  ASSERT_TRUE(Create());
  sandbox_pb::StartSandboxResponse started;
  started.set_pid(42);
  started.mutable_created_at()->set_seconds(7);
  answers_["StartSandbox"] = started.SerializeAsString();
  const auto response = Start();
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->pid(), 42U);
  EXPECT_EQ(response->created_at().seconds(), 7);
  EXPECT_EQ(response->address(), "ttrpc+unix://" + socket_);
  EXPECT_EQ(response->version(), 3U);
}

TEST_F(ControllerTest, UndoesAStartThatFails) {
  ASSERT_TRUE(Create());
  answers_["StartSandbox"] = Fail(Code::kInternal, "it panics");
  const auto started = Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "it panics");
  EXPECT_THAT(methods_, ElementsAre("CreateSandbox", "StartSandbox", "ShutdownSandbox"));
  EXPECT_EQ(keeper_.deleted().size(), 1U);
  EXPECT_FALSE(HasFolder());
}

TEST_F(ControllerTest, StartsOnce) {
  ASSERT_TRUE(Create());
  ASSERT_TRUE(Start());
  answers_["StartSandbox"] = Fail(Code::kFailedPrecondition, "it is running");
  const auto again = Start();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(HasFolder()) << "what runs is not undone";
  EXPECT_TRUE(keeper_.deleted().empty());
}

TEST_F(ControllerTest, LeavesAloneWhatIsMadeAfterItsBeginning) {
  const auto left = *folders_.All();
  ASSERT_TRUE(folders_.Make({"k8s.io", "p1"}));
  test::Await(loop_, controller_.Recover(left));
  EXPECT_TRUE(HasFolder());
}

TEST_F(ControllerTest, AsksItsStatus) {
  ASSERT_TRUE(Create());
  sandbox_pb::SandboxStatusResponse told;
  told.set_pid(42);
  told.set_state("SANDBOX_READY");
  (*told.mutable_info())["backend"] = "wasm";
  answers_["SandboxStatus"] = told.SerializeAsString();
  controller_pb::ControllerStatusRequest request;
  request.set_sandbox_id("p1");
  request.set_verbose(true);
  const auto status = Call<controller_pb::ControllerStatusResponse>("Status", request);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->state(), "SANDBOX_READY");
  EXPECT_EQ(status->pid(), 42U);
  EXPECT_EQ(status->info().at("backend"), "wasm");
  EXPECT_EQ(status->address(), "ttrpc+unix://" + socket_);
  EXPECT_EQ(status->version(), 3U);
  EXPECT_TRUE(Sent<sandbox_pb::SandboxStatusRequest>(1).verbose());
}

TEST_F(ControllerTest, ResizesAPod) {
  ASSERT_TRUE(Create());
  controller_pb::ControllerUpdateRequest request;
  request.set_sandbox_id("p1");
  request.add_fields("extensions");
  auto& extensions = *request.mutable_sandbox()->mutable_extensions();
  extensions["updated-resources"].set_value(R"({"Resources":{"cpu_quota":50000}})");
  ASSERT_TRUE(Call<controller_pb::ControllerUpdateResponse>("Update", request));
  const auto sent = Sent<sandbox_pb::UpdateSandboxRequest>(1);
  EXPECT_THAT(sent.fields(), ElementsAre("extensions"));
  EXPECT_EQ(sent.sandbox().extensions().at("updated-resources").value(),
            R"({"Resources":{"cpu_quota":50000}})");
}

TEST_F(ControllerTest, WaitsForAllWithOneCall) {
  ASSERT_TRUE(Create());
  held_ = "WaitSandbox";
  controller_pb::ControllerWaitRequest request;
  request.set_sandbox_id("p1");
  const rpc::Handler* const handler = *table_.Find(kController, "Wait");
  const auto begin = [&](std::optional<Result<std::string>>& into) {
    rpc::Call call;
    call.ns = "k8s.io";
    call.payload = request.SerializeAsString();
    const auto abandonment = call.abandonment;
    async::Start(test::Store((*handler)(std::move(call)), &into));
    return abandonment;
  };
  std::optional<Result<std::string>> first;
  std::optional<Result<std::string>> second;
  begin(first);
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return methods_.size() == 2; }));
  const auto gone = begin(second);
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return gone->parked(); }));
  gone->Happen();
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return second.has_value(); }));
  EXPECT_EQ((*second).error().code, Code::kCanceled);
  EXPECT_FALSE(first);
  sandbox_pb::WaitSandboxResponse ended;
  ended.set_exit_status(137);
  sandbox_.Answer(sandbox_.requests.back(), ended.SerializeAsString());
  ASSERT_TRUE(test::RunUntil(loop_, [&] { return first.has_value(); }));
  controller_pb::ControllerWaitResponse response;
  ASSERT_TRUE(response.ParseFromString(first->value()));
  EXPECT_EQ(response.exit_status(), 137U);
  EXPECT_EQ(methods_.size(), 2U);
}

TEST_F(ControllerTest, ShutsDownAndLeavesNothing) {
  ASSERT_TRUE(Create());
  ASSERT_TRUE(Start());
  ASSERT_TRUE(Shutdown());
  EXPECT_EQ(keeper_.deleted().size(), 1U);
  EXPECT_FALSE(HasFolder());
  // containerd asks again where it was killed meanwhile.
  EXPECT_TRUE(Shutdown());
}

TEST_F(ControllerTest, DoesNotShutDownWhatCannotBe) {
  ASSERT_TRUE(Create());
  answers_["ShutdownSandbox"] = Fail(Code::kDeadlineExceeded, "it hangs");
  const auto down = Shutdown();
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(HasFolder());
}

TEST_F(ControllerTest, KnowsWhatAProgramBeforeItMade) {
  ASSERT_TRUE(Create());
  Controller next(loop_, pool_, folders_, {dir_.path(), "/c.sock", "/c.sock.ttrpc"});
  test::Await(loop_, next.Recover(*folders_.All()));
  EXPECT_TRUE(HasFolder());
  EXPECT_TRUE(keeper_.deleted().empty());
}

TEST_F(ControllerTest, UndoesWhatAProgramBeforeItWasMaking) {
  ASSERT_TRUE(folders_.Make({"k8s.io", "p1"}));
  test::Await(loop_, controller_.Recover(*folders_.All()));
  EXPECT_FALSE(HasFolder());
  EXPECT_EQ(keeper_.deleted().size(), 1U);
}

TEST_F(ControllerTest, EndsWhatIsLeftOfAKeeper) {
  ASSERT_TRUE(Create());
  ASSERT_TRUE(Start());
  sandbox_.GoAway();
  Controller next(loop_, pool_, folders_, {dir_.path(), "/c.sock", "/c.sock.ttrpc"});
  test::Await(loop_, next.Recover(*folders_.All()));
  EXPECT_EQ(keeper_.deleted().size(), 1U);
  // containerd shuts it down.
  EXPECT_TRUE(HasFolder());
}

TEST_F(ControllerTest, DoesNotFindWhatIsNotThere) {
  for (const char* method : {"Start", "Status", "Stop", "Wait", "Platform", "Metrics", "Update"}) {
    controller_pb::ControllerStartRequest request;
    request.set_sandbox_id("none");
    const auto response = Call<controller_pb::ControllerStopResponse>(method, request);
    ASSERT_FALSE(response) << method;
    EXPECT_EQ(response.error().code, Code::kNotFound) << method << response.error().message;
  }
}

}  // namespace
}  // namespace gantry::door
