// SPDX-License-Identifier: Apache-2.0
//
// kill -9 in the middle of each call of containerd's sandbox controller: of the engine, which
// nobody notices; and of gantry-grpc, whose callers connect and ask anew.
#include <signal.h>
#include <stdlib.h>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "core/ctl/client.h"
#include "core/ctl/dial_grpc.h"
#include "proto/containerd/controller.pb.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/contract/harness/interrupt.h"
#include "tests/contract/harness/pod_box.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

namespace controller_pb = containerd::services::sandbox::v1;

constexpr char kController[] = "containerd.services.sandbox.v1.Controller";

class ControllerKill : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!node_.unavailable().empty()) {
      GTEST_SKIP() << node_.unavailable();
    }
    if (!Exists(TheSetup().programs + "/gantry-grpc")) {
      GTEST_SKIP() << "gantry-grpc is not built";
    }
    // For the client, which is a gantry-grpc, too.
    setenv("GANTRY_LIBEXEC_DIR", TheSetup().programs.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    NodeAdditions more;
    more.sections =
        "grpc:\n  address: " + address() + "\n  containerd: " + node_.root() + "/containerd.sock\n";
    ASSERT_EQ(node_.Start(more), "");
    // The keeper starts the engine with the first one that is announced, or that calls.
    auto client = ctl::OperatorClient::Connect(node_.run_dir() + "/gantry.sock");
    ASSERT_OK(client);
    ASSERT_OK(client->EngineStatus());
    ASSERT_TRUE(e2e::Eventually([this] { return GrpcProgram() > 0; }));
  }

  std::string address() const { return node_.root() + "/grpc.sock"; }

  pid_t GrpcProgram() const {
    for (const e2e::HostProcess& process :
         e2e::ProcessesWithEnv("GANTRY_RUN_DIR=" + node_.run_dir())) {
      if (process.name == "gantry-grpc") {
        return process.pid;
      }
    }
    return 0;
  }

  /// Sent by a client of its own.
  template <class Response, class Request>
  Result<Pending<Response>> Begin(const char* method, const Request& request) const {
    GANTRY_TRY(UniqueFd socket, ctl::DialGrpc(address()));
    rpc::BlockingClient client(std::move(socket));
    GANTRY_TRY(const uint32_t stream,
               client.Send(kController, method, request.SerializeAsString(), kCallLimit,
                           {{"containerd-namespace", kNamespace}}));
    return Pending<Response>(std::move(client), stream, method);
  }

  template <class Response, class Request>
  Result<Response> Call(const char* method, const Request& request) const {
    GANTRY_TRY(auto pending, (Begin<Response>(method, request)));
    return pending.Get();
  }

  controller_pb::ControllerCreateRequest CreateRequest(const std::string& id) {
    controller_pb::ControllerCreateRequest request;
    request.set_sandbox_id(id);
    *request.mutable_options() = PodBox(node_, id, "runc").CreateRequest().options();
    request.mutable_sandbox()->mutable_runtime()->set_name("io.containerd.gantry-runc.v1");
    return request;
  }

  template <class Request>
  static Request Of(const std::string& id) {
    Request request;
    request.set_sandbox_id(id);
    return request;
  }

  Status Create(const std::string& id) {
    return Plain(Call<controller_pb::ControllerCreateResponse>("Create", CreateRequest(id)));
  }

  Status Start(const std::string& id) {
    return Plain(Call<controller_pb::ControllerStartResponse>(
        "Start", Of<controller_pb::ControllerStartRequest>(id)));
  }

  Status Stop(const std::string& id) {
    return Plain(Call<controller_pb::ControllerStopResponse>(
        "Stop", Of<controller_pb::ControllerStopRequest>(id)));
  }

  Status Shutdown(const std::string& id) {
    return Plain(Call<controller_pb::ControllerShutdownResponse>(
        "Shutdown", Of<controller_pb::ControllerShutdownRequest>(id)));
  }

  void End(const std::string& id) {
    EXPECT_OK(Stop(id));
    EXPECT_OK(Shutdown(id));
    EXPECT_FALSE(Exists(Bundle(id)));
  }

  std::string Bundle(const std::string& id) const {
    return node_.run_dir() + "-sandboxes/" + kNamespace + "/" + id;
  }

  /// A sandbox as it is before a call.
  enum class Before { kNothing, kCreated, kStarted, kStopped };

  std::string Prepared(Before before) {
    const std::string id = "p" + std::to_string(++made_);
    if (before >= Before::kCreated) {
      EXPECT_OK(Create(id));
    }
    if (before >= Before::kStarted) {
      EXPECT_OK(Start(id));
    }
    if (before >= Before::kStopped) {
      EXPECT_OK(Stop(id));
    }
    return id;
  }

  /// The answer to a call of which the engine is killed.
  template <class Response, class Request>
  Result<Response> WhileTheEngineEnds(const char* method, const Request& request) const {
    const pid_t engine = node_.Engine();
    const uint64_t waiting = Got(node_.Query()).requests_waiting;
    EXPECT_TRUE(Signal(engine, SIGSTOP));
    auto pending = Begin<Response>(method, request);
    EXPECT_TRUE(IsUnderWay(waiting));
    EXPECT_TRUE(Signal(engine, SIGKILL));
    GANTRY_CHECK_OK(Plain(pending));
    return pending->Get();
  }

  /// The same of gantry-grpc, whose end the caller sees.
  template <class Response, class Request>
  void ExpectItsEnd(const char* method, const Request& request) const {
    const pid_t engine = node_.Engine();
    const uint64_t waiting = Got(node_.Query()).requests_waiting;
    const pid_t program = GrpcProgram();
    EXPECT_TRUE(Signal(engine, SIGSTOP));
    auto pending = Begin<Response>(method, request);
    EXPECT_TRUE(IsUnderWay(waiting));
    EXPECT_TRUE(Signal(program, SIGKILL));
    EXPECT_TRUE(e2e::WaitGone(program));
    EXPECT_TRUE(Signal(engine, SIGCONT));
    ASSERT_OK(pending);
    EXPECT_CODE(pending->Get(), kUnavailable);
  }

  bool IsUnderWay(uint64_t before) const {
    return e2e::Eventually([&] { return Got(node_.Query()).requests_waiting > before; });
  }

  Node node_;
  int made_ = 0;
};

using CreateResponse = controller_pb::ControllerCreateResponse;
using StartRequest = controller_pb::ControllerStartRequest;
using StartResponse = controller_pb::ControllerStartResponse;
using WaitRequest = controller_pb::ControllerWaitRequest;
using WaitResponse = controller_pb::ControllerWaitResponse;

TEST_F(ControllerKill, OfTheEngineDuringCreate) {
  const std::string id = Prepared(Before::kNothing);
  EXPECT_OK(WhileTheEngineEnds<CreateResponse>("Create", CreateRequest(id)));
  EXPECT_OK(Start(id));
  End(id);
}

TEST_F(ControllerKill, OfTheEngineDuringStart) {
  const std::string id = Prepared(Before::kCreated);
  const auto started = WhileTheEngineEnds<StartResponse>("Start", Of<StartRequest>(id));
  ASSERT_OK(started);
  EXPECT_GT(started->pid(), 0U);
  EXPECT_TRUE(started->address().starts_with("ttrpc+unix:///"));
  EXPECT_EQ(started->version(), 3U);
  End(id);
}

TEST_F(ControllerKill, OfTheEngineAtEachStepOfStart) {
  AtEachMoment([this](size_t moment) {
    const std::string id = Prepared(Before::kCreated);
    const pid_t engine = node_.Engine();
    BundleWatch watch(Bundle(id));
    auto pending = Begin<StartResponse>("Start", Of<StartRequest>(id));
    EXPECT_OK(pending);
    const bool in_time = pending && watch.WaitFor(moment, pending->fd());
    EXPECT_TRUE(Signal(engine, SIGKILL));
    if (pending) {
      EXPECT_OK(pending->Get());
    }
    End(id);
    return in_time;
  });
}

TEST_F(ControllerKill, OfTheEngineDuringPlatform) {
  const std::string id = Prepared(Before::kStarted);
  const auto told = WhileTheEngineEnds<controller_pb::ControllerPlatformResponse>(
      "Platform", Of<controller_pb::ControllerPlatformRequest>(id));
  ASSERT_OK(told);
  EXPECT_EQ(told->platform().os(), "linux");
  End(id);
}

TEST_F(ControllerKill, OfTheEngineDuringStatus) {
  const std::string id = Prepared(Before::kStarted);
  const auto told = WhileTheEngineEnds<controller_pb::ControllerStatusResponse>(
      "Status", Of<controller_pb::ControllerStatusRequest>(id));
  ASSERT_OK(told);
  EXPECT_EQ(told->state(), "SANDBOX_READY");
  End(id);
}

TEST_F(ControllerKill, OfTheEngineDuringMetrics) {
  const std::string id = Prepared(Before::kStarted);
  EXPECT_OK(WhileTheEngineEnds<controller_pb::ControllerMetricsResponse>(
      "Metrics", Of<controller_pb::ControllerMetricsRequest>(id)));
  End(id);
}

controller_pb::ControllerUpdateRequest UpdateRequest(const std::string& id) {
  controller_pb::ControllerUpdateRequest request;
  request.set_sandbox_id(id);
  wire::Any& resources = (*request.mutable_sandbox()->mutable_extensions())["updated-resources"];
  resources.set_type_url("io.containerd.cri.v1/UpdatedResources");
  resources.set_value(R"({"Resources":{"cpu_shares":512}})");
  return request;
}

TEST_F(ControllerKill, OfTheEngineDuringUpdate) {
  const std::string id = Prepared(Before::kStarted);
  EXPECT_OK(
      WhileTheEngineEnds<controller_pb::ControllerUpdateResponse>("Update", UpdateRequest(id)));
  End(id);
}

TEST_F(ControllerKill, OfTheEngineDuringWait) {
  const std::string id = Prepared(Before::kStarted);
  auto pending = Begin<WaitResponse>("Wait", Of<WaitRequest>(id));
  ASSERT_OK(pending);
  ASSERT_TRUE(IsUnderWay(0));
  node_.KillEngine();
  EXPECT_OK(Stop(id));
  EXPECT_OK(pending->Get());
  EXPECT_OK(Shutdown(id));
}

TEST_F(ControllerKill, OfTheEngineDuringStop) {
  const std::string id = Prepared(Before::kStarted);
  EXPECT_OK(WhileTheEngineEnds<controller_pb::ControllerStopResponse>(
      "Stop", Of<controller_pb::ControllerStopRequest>(id)));
  EXPECT_OK(Shutdown(id));
}

TEST_F(ControllerKill, OfTheEngineDuringShutdown) {
  const std::string id = Prepared(Before::kStopped);
  EXPECT_OK(WhileTheEngineEnds<controller_pb::ControllerShutdownResponse>(
      "Shutdown", Of<controller_pb::ControllerShutdownRequest>(id)));
  EXPECT_FALSE(Exists(Bundle(id)));
}

TEST_F(ControllerKill, OfTheProgramDuringCreateUndoesIt) {
  const std::string id = Prepared(Before::kNothing);
  ASSERT_NO_FATAL_FAILURE(ExpectItsEnd<CreateResponse>("Create", CreateRequest(id)));
  // Who asks anew finds it there until the next program has undone it.
  Status created;
  EXPECT_TRUE(e2e::Eventually([&] {
    created = Create(id);
    return CodeOf(created) != Code::kAlreadyExists;
  }));
  EXPECT_OK(created);
  EXPECT_OK(Start(id));
  End(id);
}

TEST_F(ControllerKill, OfTheProgramDuringStartUndoesIt) {
  const std::string id = Prepared(Before::kCreated);
  ASSERT_NO_FATAL_FAILURE(ExpectItsEnd<StartResponse>("Start", Of<StartRequest>(id)));
  EXPECT_TRUE(e2e::Eventually([&] { return !Exists(Bundle(id)); }));
  EXPECT_CODE(Start(id), kNotFound);
  EXPECT_OK(Create(id));
  EXPECT_OK(Start(id));
  End(id);
}

TEST_F(ControllerKill, OfTheProgramDuringWhatOnlyAsks) {
  const std::string id = Prepared(Before::kStarted);
  const auto platform = Of<controller_pb::ControllerPlatformRequest>(id);
  ASSERT_NO_FATAL_FAILURE(
      ExpectItsEnd<controller_pb::ControllerPlatformResponse>("Platform", platform));
  EXPECT_OK(Call<controller_pb::ControllerPlatformResponse>("Platform", platform));
  const auto status = Of<controller_pb::ControllerStatusRequest>(id);
  ASSERT_NO_FATAL_FAILURE(ExpectItsEnd<controller_pb::ControllerStatusResponse>("Status", status));
  EXPECT_EQ(Got(Call<controller_pb::ControllerStatusResponse>("Status", status)).state(),
            "SANDBOX_READY");
  const auto metrics = Of<controller_pb::ControllerMetricsRequest>(id);
  ASSERT_NO_FATAL_FAILURE(
      ExpectItsEnd<controller_pb::ControllerMetricsResponse>("Metrics", metrics));
  EXPECT_OK(Call<controller_pb::ControllerMetricsResponse>("Metrics", metrics));
  End(id);
}

TEST_F(ControllerKill, OfTheProgramDuringUpdate) {
  const std::string id = Prepared(Before::kStarted);
  ASSERT_NO_FATAL_FAILURE(
      ExpectItsEnd<controller_pb::ControllerUpdateResponse>("Update", UpdateRequest(id)));
  EXPECT_OK(Call<controller_pb::ControllerUpdateResponse>("Update", UpdateRequest(id)));
  End(id);
}

TEST_F(ControllerKill, OfTheProgramDuringWait) {
  const std::string id = Prepared(Before::kStarted);
  ASSERT_NO_FATAL_FAILURE(ExpectItsEnd<WaitResponse>("Wait", Of<WaitRequest>(id)));
  auto pending = Begin<WaitResponse>("Wait", Of<WaitRequest>(id));
  ASSERT_OK(pending);
  EXPECT_OK(Stop(id));
  EXPECT_OK(pending->Get());
  EXPECT_OK(Shutdown(id));
}

TEST_F(ControllerKill, OfTheProgramDuringStopAndShutdown) {
  const std::string id = Prepared(Before::kStarted);
  const auto stop = Of<controller_pb::ControllerStopRequest>(id);
  ASSERT_NO_FATAL_FAILURE(ExpectItsEnd<controller_pb::ControllerStopResponse>("Stop", stop));
  EXPECT_OK(Stop(id));
  const auto shutdown = Of<controller_pb::ControllerShutdownRequest>(id);
  ASSERT_NO_FATAL_FAILURE(
      ExpectItsEnd<controller_pb::ControllerShutdownResponse>("Shutdown", shutdown));
  EXPECT_OK(Shutdown(id));
  EXPECT_FALSE(Exists(Bundle(id)));
}

TEST_F(ControllerKill, OfTheProgramLeavesNoSocketWhereNoneIsConfigured) {
  ASSERT_TRUE(Exists(address()));
  const pid_t program = GrpcProgram();
  const std::string config = node_.root() + "/gantry.yaml";
  std::string text = e2e::ReadText(config);
  text.resize(text.find("grpc:\n"));
  e2e::WriteText(config, text);
  ASSERT_OK(node_.Upgrade());
  EXPECT_TRUE(e2e::WaitGone(program));
  EXPECT_TRUE(e2e::Eventually([this] { return !Exists(address()); }));
}

}  // namespace
}  // namespace gantry::contract
