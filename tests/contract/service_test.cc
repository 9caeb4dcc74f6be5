// SPDX-License-Identifier: Apache-2.0
//
// What arrives at a socket and is no call of the Task service.
#include <sys/socket.h>
#include <unistd.h>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/ctl/client.h"
#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

class Services : public ContractTest {};

TEST_P(Services, OfBothVersionsAnswer) {
  Box& box = Running();
  pb::StateRequest request;
  request.set_id(box.id());
  for (const char* service : {"containerd.task.v2.Task", "containerd.task.v3.Task"}) {
    const auto bytes = box.client().Raw(service, "State", request.SerializeAsString());
    ASSERT_OK(bytes);
    pb::StateResponse response;
    ASSERT_TRUE(response.ParseFromString(*bytes));
    EXPECT_EQ(response.status(), pb::RUNNING);
  }
}

TEST_P(Services, OfTheOperatorTellWhatRuns) {
  Box& box = Running();
  const std::string socket = node().run_dir() + "/gantry.sock";
  auto client = ctl::OperatorClient::Connect(socket);
  ASSERT_OK(client);
  const auto shown = client->Inspect("", box.id());
  ASSERT_OK(shown);
  EXPECT_EQ(shown->instance().state(), "running");
  EXPECT_NE(shown->instance().handler(), "");
  const bool has_cgroup = shown->cgroups_size() > 0;
  EXPECT_EQ(shown->instance().memory_bytes() > 0, has_cgroup);
  const auto status = client->EngineStatus();
  ASSERT_OK(status);
  EXPECT_GE(status->sandboxes(), 1U);
  const auto keeper = ctl::QueryKeeper(socket);
  ASSERT_OK(keeper);
  EXPECT_EQ(static_cast<uint32_t>(keeper->engine_pid), status->engine_pid());
  EXPECT_GE(keeper->connections, 1U);
}

TEST_P(Services, ThatAreUnknownAreUnimplemented) {
  Box& box = Running();
  for (const char* service : {"containerd.task.v1.Task", "containerd.task.v4.Task", "", "x",
                              "containerd.services.streaming.v1.Streaming"}) {
    EXPECT_CODE(box.client().Raw(service, "State", ""), kUnimplemented) << service;
  }
  EXPECT_OK(box.State());
}

TEST_P(Services, MethodsThatAreUnknownAreUnimplemented) {
  Box& box = Running();
  for (const std::string& method :
       {std::string("Explode"), std::string("state"), std::string(), std::string(10000, 'x')}) {
    EXPECT_CODE(box.client().Raw(kService, method, ""), kUnimplemented) << method.substr(0, 80);
  }
  EXPECT_OK(box.State());
}

TEST_P(Services, PayloadsThatAreNoMessagesAreRefused) {
  Box& box = Running();
  const std::string garbage = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  for (const char* method :
       {"Create", "Start", "Delete", "State", "Exec", "Wait", "Kill", "Pids", "Pause", "Resume",
        "ResizePty", "CloseIO", "Update", "Checkpoint", "Stats", "Connect", "Shutdown"}) {
    EXPECT_CODE(box.client().Raw(kService, method, garbage), kInvalidArgument) << method;
  }
  EXPECT_OK(box.State());
}

TEST_P(Services, GarbageOnOneConnectionHarmsNoOther) {
  Box& box = Running();
  auto pending = box.client().Begin<pb::WaitResponse>("Wait", [&] {
    pb::WaitRequest request;
    request.set_id(box.id());
    return request;
  }());
  ASSERT_OK(pending);
  const std::vector<std::string> garbage = {
      "GET / HTTP/1.1\r\n\r\n", std::string(10, '\xff'), std::string(100000, '\0'),
      std::string("\0\0\0\5\0\0\0\1\1\0", 10), std::string("\0\0\0\0\0\0\0\2\1\0", 10)};
  for (const std::string& bytes : garbage) {
    const auto socket = ConnectUnix(box.client().path());
    ASSERT_OK(socket);
    IgnoreError(SendWithFds(socket->get(), bytes, {}), "it may be closed already");
    EXPECT_OK(box.State());
  }
  EXPECT_OK(box.Kill(9));
  const auto ended = pending->Get();
  ASSERT_OK(ended);
  EXPECT_EQ(ended->exit_status(), 137U);
}

TEST_P(Services, ATaskOfOneSocketIsTheSameOnManyConnections) {
  Box& box = Running();
  std::vector<Pending<pb::WaitResponse>> waits;
  pb::WaitRequest request;
  request.set_id(box.id());
  for (int i = 0; i < 50; ++i) {
    auto pending = box.client().Begin<pb::WaitResponse>("Wait", request);
    ASSERT_OK(pending);
    waits.push_back(std::move(*pending));
  }
  ASSERT_OK(box.Kill(9));
  for (auto& wait : waits) {
    const auto ended = wait.Get();
    ASSERT_OK(ended);
    EXPECT_EQ(ended->exit_status(), 137U);
  }
}

INSTANTIATE_CONTRACT(Services);

}  // namespace
}  // namespace gantry::contract
