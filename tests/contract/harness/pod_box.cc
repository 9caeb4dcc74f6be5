// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/harness/pod_box.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <gantry/pod_config.h>
#include <gantry/protowire.h>

#include "tests/contract/harness/own_network.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

/// `runtime.v1.PodSandboxConfig`.
std::string Config(const std::string& cgroup) {
  ProtoWriter namespaces;
  namespaces.Varint(
      1, static_cast<uint64_t>(OwnNetworks() ? NamespaceMode::kPod : NamespaceMode::kNode));
  namespaces.Varint(2, static_cast<uint64_t>(NamespaceMode::kContainer));
  ProtoWriter security;
  security.Bytes(1, namespaces.str());
  ProtoWriter on_linux;
  on_linux.Text(1, cgroup);
  on_linux.Bytes(2, security.str());
  ProtoWriter config;
  config.Bytes(8, on_linux.str());
  return config.Take();
}

}  // namespace

PodBox::PodBox(Node& node, std::string id, std::string handler)
    : node_(node),
      id_(std::move(id)),
      handler_(std::move(handler)),
      bundle_(node.root() + "/bundles/" + id_),
      client_("") {}

bool PodBox::Announce() {
  std::filesystem::create_directories(bundle_ + "/rootfs");
  const auto path = node_.Announce(id_, handler_, bundle_);
  client_ = TaskClient(path.value_or(""), kSandboxService);
  return path.has_value();
}

sandbox_pb::CreateSandboxRequest PodBox::CreateRequest() const {
  auto request = OfPod<sandbox_pb::CreateSandboxRequest>(id_);
  request.set_bundle_path(bundle_);
  request.mutable_options()->set_type_url("runtime.v1.PodSandboxConfig");
  request.mutable_options()->set_value(Config(cgroup()));
  return request;
}

Status PodBox::Create() const {
  return Plain(client_.Call<sandbox_pb::CreateSandboxResponse>("CreateSandbox", CreateRequest()));
}

Result<sandbox_pb::StartSandboxResponse> PodBox::Start() const {
  return client_.Call<sandbox_pb::StartSandboxResponse>(
      "StartSandbox", OfPod<sandbox_pb::StartSandboxRequest>(id_));
}

Status PodBox::Stop() const {
  return Plain(client_.Call<sandbox_pb::StopSandboxResponse>(
      "StopSandbox", OfPod<sandbox_pb::StopSandboxRequest>(id_)));
}

Result<sandbox_pb::WaitSandboxResponse> PodBox::Wait() const {
  return client_.Call<sandbox_pb::WaitSandboxResponse>("WaitSandbox",
                                                       OfPod<sandbox_pb::WaitSandboxRequest>(id_));
}

Result<sandbox_pb::SandboxStatusResponse> PodBox::GetStatus() const {
  return client_.Call<sandbox_pb::SandboxStatusResponse>(
      "SandboxStatus", OfPod<sandbox_pb::SandboxStatusRequest>(id_));
}

Status PodBox::Ping() const {
  return Plain(
      client_.Call<sandbox_pb::PingResponse>("PingSandbox", OfPod<sandbox_pb::PingRequest>(id_)));
}

Status PodBox::Shutdown() const {
  return Plain(client_.Call<sandbox_pb::ShutdownSandboxResponse>(
      "ShutdownSandbox", OfPod<sandbox_pb::ShutdownSandboxRequest>(id_)));
}

Result<sandbox_pb::SandboxMetricsResponse> PodBox::Metrics() const {
  return client_.Call<sandbox_pb::SandboxMetricsResponse>(
      "SandboxMetrics", OfPod<sandbox_pb::SandboxMetricsRequest>(id_));
}

Result<sandbox_pb::PlatformResponse> PodBox::Platform() const {
  return client_.Call<sandbox_pb::PlatformResponse>("Platform",
                                                    OfPod<sandbox_pb::PlatformRequest>(id_));
}

Status PodBox::Finish() {
  if (Ping()) {
    GANTRY_CHECK_OK(Stop());
    GANTRY_CHECK_OK(Shutdown());
  }
  GANTRY_CHECK_OK(node_.ShimDelete(id_, bundle_));
  for (const std::string& name : e2e::ListFolder(bundle_)) {
    if (name != "rootfs" && name != "address") {
      return Fail(Code::kInternal, "'{}' is left in the bundle", name);
    }
  }
  for (const std::string& point : e2e::MountsBelow(bundle_)) {
    return Fail(Code::kInternal, "the mount '{}' is left", point);
  }
  std::error_code error;
  std::filesystem::remove_all(bundle_, error);
  return {};
}

}  // namespace gantry::contract
