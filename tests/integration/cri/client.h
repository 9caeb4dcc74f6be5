// SPDX-License-Identifier: Apache-2.0
//
// A client of containerd's CRI as small as the tests and the demo need it; what
// a kubelet does, without one.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/integration/cri/cri.grpc.pb.h"

namespace gantry::e2e {

namespace cri = ::runtime::v1;

/// Bytes; 0 = none.
struct PodMemory {
  int64_t overhead = 0;
  int64_t resources = 0;
};

/// What a pod is made from; the same is needed again for its containers.
struct PodConfig {
  std::string name;
  /// Empty: made of the name.
  std::string uid;
  std::string log_directory;
  std::string cgroup_parent;
  std::string runtime_handler = "gantry";
  /// Empty: the node's network, and with it the node's name.
  std::string hostname;
  cri::NamespaceMode pid = cri::CONTAINER;
  cri::NamespaceMode ipc = cri::POD;
  std::vector<std::string> dns_servers;
  std::map<std::string, std::string> sysctls;
  std::map<std::string, std::string> annotations;
  PodMemory memory;
  /// length 0: the node's user namespace. The same for users and groups.
  cri::IDMapping user_namespace;
};

struct ContainerConfig {
  std::string name;
  std::string image = "docker.io/library/busybox:gantry";
  std::vector<std::string> command;
  /// 0 = none.
  int64_t memory_limit_bytes = 0;
  int64_t cpu_shares = 0;
  int64_t oom_score_adj = 0;
  bool input = false;
  /// The input ends with the first client that was attached.
  bool input_once = false;
  bool terminal = false;
  cri::NamespaceMode pid = cri::POD;
  /// The container whose processes it sees, for TARGET.
  std::string pid_target;
  std::vector<cri::Mount> mounts;
  std::map<std::string, std::string> env;
  /// As containerd's handler lets them through to the container.
  std::map<std::string, std::string> annotations;
  /// Beside those that every container has, without CAP_.
  std::vector<std::string> capabilities;
  /// -1: the image's.
  int64_t user = -1;
  /// Of that user only: runAsGroup, and supplementalGroups with fsGroup.
  int64_t group = -1;
  std::vector<int64_t> groups;
};

struct ExecResult {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Thread: any. Blocks: each call up to `deadline`.
class CriClient {
 public:
  /// `address` is a socket's path.
  explicit CriClient(const std::string& address,
                     std::chrono::milliseconds deadline = std::chrono::seconds(60));
  ~CriClient();
  CriClient(const CriClient&) = delete;
  CriClient& operator=(const CriClient&) = delete;

  Result<cri::VersionResponse> Version();
  /// Whether CRI knows the image; it learns of an import a moment later.
  Result<bool> HasImage(const std::string& image);

  Result<std::string> RunPod(const PodConfig& config);
  Status StopPod(const std::string& id);
  Status RemovePod(const std::string& id);
  Result<cri::PodSandboxStatusResponse> PodStatus(const std::string& id);
  Result<std::vector<cri::PodSandbox>> Pods();

  Result<std::string> Create(const std::string& pod, const PodConfig& pod_config,
                             const ContainerConfig& config);
  Status Start(const std::string& id);
  /// Creates and starts it. After an error it may be there.
  Result<std::string> Run(const std::string& pod, const PodConfig& pod_config,
                          const ContainerConfig& config);
  Status Stop(const std::string& id, std::chrono::seconds grace);
  Status Remove(const std::string& id);
  Result<cri::ContainerStatusResponse> ContainerStatus(const std::string& id);
  Result<std::vector<cri::Container>> Containers();
  Result<ExecResult> Exec(const std::string& id, const std::vector<std::string>& command);
  /// Where the stream is. With input; on a terminal, all output is one stream.
  Result<std::string> ExecStream(const std::string& id, const std::vector<std::string>& command,
                                 bool terminal);
  Result<std::string> AttachStream(const std::string& id, bool terminal);
  Result<std::string> PortStream(const std::string& pod, uint16_t port);
  Status ReopenLog(const std::string& id);
  Result<cri::ContainerStats> Stats(const std::string& id);
  Status Update(const std::string& id, const cri::LinuxContainerResources& resources);
  Status UpdateMemory(const std::string& id, int64_t limit_bytes);
  Status UpdatePodMemory(const std::string& pod, const PodMemory& memory);
  /// `location` is the archive's path.
  Status Checkpoint(const std::string& id, const std::string& location);

 private:
  std::chrono::milliseconds deadline_;
  std::unique_ptr<cri::RuntimeService::Stub> runtime_;
  std::unique_ptr<cri::ImageService::Stub> images_;
};

}  // namespace gantry::e2e
