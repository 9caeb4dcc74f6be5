// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/cri/client.h"

#include <utility>

#include <grpcpp/grpcpp.h>

namespace gantry::e2e {
namespace {

template <class Stub, class Request, class Response>
using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

template <class Stub, class Request, class Response>
Result<Response> Invoke(Stub& stub, Method<Stub, Request, Response> method, const Request& request,
                        std::chrono::milliseconds deadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) {
    return Fail(static_cast<Code>(status.error_code()), "{}", status.error_message());
  }
  return response;
}

cri::PodSandboxConfig Pod(const PodConfig& config) {
  cri::PodSandboxConfig pod;
  pod.mutable_metadata()->set_name(config.name);
  pod.mutable_metadata()->set_uid("uid-" + config.name);
  pod.mutable_metadata()->set_namespace_("default");
  pod.set_log_directory(config.log_directory);
  auto& on_linux = *pod.mutable_linux();
  on_linux.set_cgroup_parent(config.cgroup_parent);
  on_linux.mutable_sysctls()->insert(config.sysctls.begin(), config.sysctls.end());
  auto& namespaces = *on_linux.mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(config.hostname.empty() ? cri::NODE : cri::POD);
  namespaces.set_pid(config.pid);
  namespaces.set_ipc(config.ipc);
  pod.set_hostname(config.hostname);
  for (const std::string& server : config.dns_servers) {
    pod.mutable_dns_config()->add_servers(server);
  }
  return pod;
}

}  // namespace

CriClient::CriClient(const std::string& address, std::chrono::milliseconds deadline)
    : deadline_(deadline) {
  const auto channel = grpc::CreateChannel("unix://" + address, grpc::InsecureChannelCredentials());
  runtime_ = cri::RuntimeService::NewStub(channel);
  images_ = cri::ImageService::NewStub(channel);
}

CriClient::~CriClient() = default;

Result<cri::VersionResponse> CriClient::Version() {
  return Invoke(*runtime_, &cri::RuntimeService::Stub::Version, cri::VersionRequest(), deadline_);
}

Result<bool> CriClient::HasImage(const std::string& image) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  GANTRY_TRY(const auto response,
             Invoke(*images_, &cri::ImageService::Stub::ImageStatus, request, deadline_));
  return response.has_image();
}

Result<std::string> CriClient::RunPod(const PodConfig& config) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = Pod(config);
  request.set_runtime_handler(config.runtime_handler);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::RunPodSandbox, request, deadline_));
  return response.pod_sandbox_id();
}

Status CriClient::StopPod(const std::string& id) {
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::StopPodSandbox, request, deadline_));
  return {};
}

Status CriClient::RemovePod(const std::string& id) {
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(id);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::RemovePodSandbox, request, deadline_));
  return {};
}

Result<cri::PodSandboxStatusResponse> CriClient::PodStatus(const std::string& id) {
  cri::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(id);
  request.set_verbose(true);
  return Invoke(*runtime_, &cri::RuntimeService::Stub::PodSandboxStatus, request, deadline_);
}

Result<std::vector<cri::PodSandbox>> CriClient::Pods() {
  GANTRY_TRY(const auto response, Invoke(*runtime_, &cri::RuntimeService::Stub::ListPodSandbox,
                                         cri::ListPodSandboxRequest(), deadline_));
  return std::vector<cri::PodSandbox>(response.items().begin(), response.items().end());
}

Result<std::string> CriClient::Create(const std::string& pod, const PodConfig& pod_config,
                                      const ContainerConfig& config) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod);
  *request.mutable_sandbox_config() = Pod(pod_config);
  cri::ContainerConfig& container = *request.mutable_config();
  container.mutable_metadata()->set_name(config.name);
  container.mutable_image()->set_image(config.image);
  container.mutable_command()->Assign(config.command.begin(), config.command.end());
  container.set_log_path(config.name + ".log");
  container.mutable_linux()->mutable_security_context()->mutable_namespace_options()->set_network(
      cri::NODE);
  if (config.memory_limit_bytes > 0) {
    container.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(
        config.memory_limit_bytes);
  }
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::CreateContainer, request, deadline_));
  return response.container_id();
}

Status CriClient::Start(const std::string& id) {
  cri::StartContainerRequest request;
  request.set_container_id(id);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::StartContainer, request, deadline_));
  return {};
}

Status CriClient::Stop(const std::string& id, std::chrono::seconds grace) {
  cri::StopContainerRequest request;
  request.set_container_id(id);
  request.set_timeout(grace.count());
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::StopContainer, request, deadline_ + grace));
  return {};
}

Status CriClient::Remove(const std::string& id) {
  cri::RemoveContainerRequest request;
  request.set_container_id(id);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::RemoveContainer, request, deadline_));
  return {};
}

Result<cri::ContainerStatusResponse> CriClient::ContainerStatus(const std::string& id) {
  cri::ContainerStatusRequest request;
  request.set_container_id(id);
  request.set_verbose(true);
  return Invoke(*runtime_, &cri::RuntimeService::Stub::ContainerStatus, request, deadline_);
}

Result<std::vector<cri::Container>> CriClient::Containers() {
  GANTRY_TRY(const auto response, Invoke(*runtime_, &cri::RuntimeService::Stub::ListContainers,
                                         cri::ListContainersRequest(), deadline_));
  return std::vector<cri::Container>(response.containers().begin(), response.containers().end());
}

Result<ExecResult> CriClient::Exec(const std::string& id, const std::vector<std::string>& command) {
  cri::ExecSyncRequest request;
  request.set_container_id(id);
  request.mutable_cmd()->Assign(command.begin(), command.end());
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::ExecSync, request, deadline_));
  return ExecResult{response.exit_code(), response.stdout(), response.stderr()};
}

Result<cri::ContainerStats> CriClient::Stats(const std::string& id) {
  cri::ContainerStatsRequest request;
  request.set_container_id(id);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::ContainerStats, request, deadline_));
  return response.stats();
}

Status CriClient::UpdateMemory(const std::string& id, int64_t limit_bytes) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  request.mutable_linux()->set_memory_limit_in_bytes(limit_bytes);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::UpdateContainerResources, request, deadline_));
  return {};
}

}  // namespace gantry::e2e
