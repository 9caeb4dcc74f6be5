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

/// A container says the same of its namespaces as its pod.
void SetUserNamespace(cri::NamespaceOption& namespaces, const PodConfig& config) {
  if (config.user_namespace.length() > 0) {
    cri::UserNamespace& user = *namespaces.mutable_userns_options();
    user.set_mode(cri::POD);
    *user.add_uids() = config.user_namespace;
    *user.add_gids() = config.user_namespace;
  }
}

cri::PodSandboxConfig Pod(const PodConfig& config) {
  cri::PodSandboxConfig pod;
  pod.mutable_metadata()->set_name(config.name);
  pod.mutable_metadata()->set_uid(config.uid.empty() ? "uid-" + config.name : config.uid);
  pod.mutable_metadata()->set_namespace_("default");
  pod.set_log_directory(config.log_directory);
  pod.mutable_annotations()->insert(config.annotations.begin(), config.annotations.end());
  auto& on_linux = *pod.mutable_linux();
  on_linux.set_cgroup_parent(config.cgroup_parent);
  on_linux.mutable_sysctls()->insert(config.sysctls.begin(), config.sysctls.end());
  auto& namespaces = *on_linux.mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(config.hostname.empty() ? cri::NODE : cri::POD);
  namespaces.set_pid(config.pid);
  namespaces.set_ipc(config.ipc);
  SetUserNamespace(namespaces, config);
  if (config.memory.overhead > 0) {
    on_linux.mutable_overhead()->set_memory_limit_in_bytes(config.memory.overhead);
  }
  if (config.memory.resources > 0) {
    on_linux.mutable_resources()->set_memory_limit_in_bytes(config.memory.resources);
  }
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
  container.set_stdin(config.input);
  container.set_stdin_once(config.input_once);
  container.set_tty(config.terminal);
  auto& namespaces =
      *container.mutable_linux()->mutable_security_context()->mutable_namespace_options();
  namespaces.set_network(pod_config.hostname.empty() ? cri::NODE : cri::POD);
  namespaces.set_pid(config.pid == cri::POD ? pod_config.pid : config.pid);
  namespaces.set_target_id(config.pid_target);
  namespaces.set_ipc(pod_config.ipc);
  SetUserNamespace(namespaces, pod_config);
  for (const std::string& capability : config.capabilities) {
    container.mutable_linux()
        ->mutable_security_context()
        ->mutable_capabilities()
        ->add_add_capabilities(capability);
  }
  auto& security = *container.mutable_linux()->mutable_security_context();
  if (config.user >= 0) {
    security.mutable_run_as_user()->set_value(config.user);
  }
  if (config.group >= 0) {
    security.mutable_run_as_group()->set_value(config.group);
  }
  security.mutable_supplemental_groups()->Assign(config.groups.begin(), config.groups.end());
  container.mutable_mounts()->Assign(config.mounts.begin(), config.mounts.end());
  container.mutable_annotations()->insert(config.annotations.begin(), config.annotations.end());
  for (const auto& [key, value] : config.env) {
    cri::KeyValue& variable = *container.add_envs();
    variable.set_key(key);
    variable.set_value(value);
  }
  if (config.memory_limit_bytes > 0) {
    container.mutable_linux()->mutable_resources()->set_memory_limit_in_bytes(
        config.memory_limit_bytes);
  }
  if (config.cpu_shares > 0) {
    container.mutable_linux()->mutable_resources()->set_cpu_shares(config.cpu_shares);
  }
  if (config.oom_score_adj != 0) {
    container.mutable_linux()->mutable_resources()->set_oom_score_adj(config.oom_score_adj);
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

Result<std::string> CriClient::Run(const std::string& pod, const PodConfig& pod_config,
                                   const ContainerConfig& config) {
  GANTRY_TRY(std::string id, Create(pod, pod_config, config));
  GANTRY_CHECK_OK(Start(id));
  return id;
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

Result<std::string> CriClient::ExecStream(const std::string& id,
                                          const std::vector<std::string>& command, bool terminal) {
  cri::ExecRequest request;
  request.set_container_id(id);
  request.mutable_cmd()->Assign(command.begin(), command.end());
  request.set_tty(terminal);
  request.set_stdin(true);
  request.set_stdout(true);
  request.set_stderr(!terminal);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::Exec, request, deadline_));
  return response.url();
}

Result<std::string> CriClient::AttachStream(const std::string& id, bool terminal) {
  cri::AttachRequest request;
  request.set_container_id(id);
  request.set_tty(terminal);
  request.set_stdin(true);
  request.set_stdout(true);
  request.set_stderr(!terminal);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::Attach, request, deadline_));
  return response.url();
}

Result<std::string> CriClient::PortStream(const std::string& pod, uint16_t port) {
  cri::PortForwardRequest request;
  request.set_pod_sandbox_id(pod);
  request.add_port(port);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::PortForward, request, deadline_));
  // What the request says of the port, SPDY's clients say on the stream.
  return response.url() + "?port=" + std::to_string(port);
}

Status CriClient::ReopenLog(const std::string& id) {
  cri::ReopenContainerLogRequest request;
  request.set_container_id(id);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::ReopenContainerLog, request, deadline_));
  return {};
}

Result<cri::ContainerStats> CriClient::Stats(const std::string& id) {
  cri::ContainerStatsRequest request;
  request.set_container_id(id);
  GANTRY_TRY(const auto response,
             Invoke(*runtime_, &cri::RuntimeService::Stub::ContainerStats, request, deadline_));
  return response.stats();
}

Status CriClient::UpdateMemory(const std::string& id, int64_t limit_bytes) {
  cri::LinuxContainerResources resources;
  resources.set_memory_limit_in_bytes(limit_bytes);
  return Update(id, resources);
}

Status CriClient::Update(const std::string& id, const cri::LinuxContainerResources& resources) {
  cri::UpdateContainerResourcesRequest request;
  request.set_container_id(id);
  *request.mutable_linux() = resources;
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::UpdateContainerResources, request, deadline_));
  return {};
}

Status CriClient::UpdatePodMemory(const std::string& pod, const PodMemory& memory) {
  cri::UpdatePodSandboxResourcesRequest request;
  request.set_pod_sandbox_id(pod);
  request.mutable_overhead()->set_memory_limit_in_bytes(memory.overhead);
  request.mutable_resources()->set_memory_limit_in_bytes(memory.resources);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::UpdatePodSandboxResources, request, deadline_));
  return {};
}

Status CriClient::Checkpoint(const std::string& id, const std::string& location) {
  cri::CheckpointContainerRequest request;
  request.set_container_id(id);
  request.set_location(location);
  GANTRY_CHECK_OK(
      Invoke(*runtime_, &cri::RuntimeService::Stub::CheckpointContainer, request, deadline_));
  return {};
}

}  // namespace gantry::e2e
