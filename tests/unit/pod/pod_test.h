// SPDX-License-Identifier: Apache-2.0
//
// Calls of the Sandbox service on the pod "p1".
#pragma once

#include <filesystem>
#include <string>

#include "proto/containerd/sandbox.pb.h"
#include "tests/unit/task/task_test.h"

namespace gantry::task {

class PodTest : public TaskTest {
 protected:
  static constexpr const char* kPod = "p1";

  /// A bundle without config.json, and its announced instance.
  void AnnouncePod() {
    ASSERT_TRUE(os::MakeDirs(bundle(), 0755));
    instance_ = keeper_.Announce(kPod, bundle());
    ASSERT_TRUE(Until([&] { return engine_->tasks().instances().contains(instance_); }));
  }

  std::string bundle() const { return dir_.path() + "/" + kPod; }

  sandbox_pb::CreateSandboxRequest CreateSandboxRequest() const {
    sandbox_pb::CreateSandboxRequest request;
    request.set_sandbox_id(kPod);
    request.set_bundle_path(bundle());
    return request;
  }

  template <class Response>
  Result<Response> AskSandbox(const std::string& method,
                              const google::protobuf::MessageLite& request, bool replay = false) {
    return TakeAs<Response>(SendSandbox(method, request, kPod, replay));
  }

  auto CreateSandbox(bool replay = false) {
    return AskSandbox<sandbox_pb::CreateSandboxResponse>("CreateSandbox", CreateSandboxRequest(),
                                                         replay);
  }

  /// A request that has nothing but the pod's id.
  template <class Request>
  static Request Of(const std::string& id = kPod) {
    Request request;
    request.set_sandbox_id(id);
    return request;
  }

  auto StartSandbox(bool replay = false) {
    return AskSandbox<sandbox_pb::StartSandboxResponse>(
        "StartSandbox", Of<sandbox_pb::StartSandboxRequest>(), replay);
  }

  auto StopSandbox() {
    return AskSandbox<sandbox_pb::StopSandboxResponse>("StopSandbox",
                                                       Of<sandbox_pb::StopSandboxRequest>());
  }

  auto ShutdownSandbox(bool replay = false) {
    return AskSandbox<sandbox_pb::ShutdownSandboxResponse>(
        "ShutdownSandbox", Of<sandbox_pb::ShutdownSandboxRequest>(), replay);
  }

  auto SandboxStatus(bool verbose = false) {
    auto request = Of<sandbox_pb::SandboxStatusRequest>();
    request.set_verbose(verbose);
    return AskSandbox<sandbox_pb::SandboxStatusResponse>("SandboxStatus", request);
  }

  uint32_t SendWaitSandbox(bool replay = false) {
    return SendSandbox("WaitSandbox", Of<sandbox_pb::WaitSandboxRequest>(), kPod, replay);
  }

  Result<sandbox_pb::WaitSandboxResponse> TakeWait(uint32_t stream) {
    return TakeAs<sandbox_pb::WaitSandboxResponse>(stream);
  }

  /// From here on the pod's record cannot be written.
  void BlockRecord() const {
    const std::string record = store::PathOf(bundle());
    std::filesystem::rename(record, record + ".aside");
    ASSERT_TRUE(os::MakeDirs(record + "/in/the/way", 0700));
  }

  /// It can, and says what it said before.
  void UnblockRecord() const {
    const std::string record = store::PathOf(bundle());
    std::filesystem::remove_all(record);
    std::filesystem::rename(record + ".aside", record);
  }

  /// Announced, created and started.
  void RunPod() {
    AnnouncePod();
    const auto created = CreateSandbox();
    ASSERT_TRUE(created) << created.error().message;
    const auto started = StartSandbox();
    ASSERT_TRUE(started) << started.error().message;
  }

  uint64_t instance_ = 0;
};

}  // namespace gantry::task
