// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/cri_test.h"

#include <unistd.h>

#include <filesystem>

namespace gantry::e2e {
namespace {

/// containerd gives a bundle such a name before it removes it, and looks at it no more.
std::vector<std::string> BundlesIn(const std::string& folder) {
  std::vector<std::string> names = ListFolder(folder);
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

std::string DescribeBundles(const std::string& folder) {
  std::string text;
  for (const std::string& id : BundlesIn(folder)) {
    text += "\n  " + id + ":";
    for (const std::string& name : ListFolder((folder + "/").append(id))) {
      text += " " + name;
    }
  }
  return text;
}

std::optional<CriStream> OpenStream(const Result<std::string>& url) {
  EXPECT_TRUE(url) << url.error_or(Error{}).message;
  if (!url) {
    return std::nullopt;
  }
  auto opened = ChannelSocket::Open(*url);
  EXPECT_TRUE(opened) << opened.error_or(Error{}).message;
  return opened ? std::optional(CriStream(std::move(*opened))) : std::nullopt;
}

}  // namespace

void CriTest::SetUp() {
  E2eTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) {
    return;
  }
  Connect();
}

void CriTest::Connect() {
  client_ = std::make_unique<CriClient>(node().address());
  ASSERT_TRUE(Eventually([&] {
    return client_->HasImage("docker.io/library/busybox:gantry").value_or(false) &&
           client_->HasImage("registry.k8s.io/pause:gantry").value_or(false);
  })) << "CRI is not ready: "
      << client_->Version().error_or(Error{}).message;
}

void CriTest::TearDown() {
  if (client_ != nullptr) {
    RemovePods();
    ExpectNoBundles();
    RemoveParents();
  }
  E2eTest::TearDown();
}

void CriTest::ExpectNoBundles() {
  for (const char* plugin : {"runtime.v2.task", "sandbox.controller.v1.shim"}) {
    const std::string bundles = node().state() + "/io.containerd." + plugin + "/k8s.io";
    ASSERT_TRUE(Eventually([&] { return BundlesIn(bundles).empty(); }))
        << "left: " << DescribeBundles(bundles);
  }
  const std::string folders = settings().controller_folders() + "/k8s.io";
  ASSERT_TRUE(Eventually([&] { return BundlesIn(folders).empty(); }))
      << "left: " << DescribeBundles(folders);
}

void CriTest::RemovePods() {
  Status last;
  EXPECT_TRUE(Eventually([&] {
    const auto pods = cri().Pods();
    bool gone = pods && pods->empty();
    for (const cri::PodSandbox& pod : pods.value_or(std::vector<cri::PodSandbox>())) {
      last = cri().StopPod(pod.id());
      last = last ? cri().RemovePod(pod.id()) : std::move(last);
    }
    return gone;
  })) << last.error_or(Error{}).message;
}

void CriTest::RemoveContainers() {
  Status last;
  EXPECT_TRUE(Eventually([&] {
    const auto containers = cri().Containers();
    bool gone = containers && containers->empty();
    for (const cri::Container& one : containers.value_or(std::vector<cri::Container>())) {
      last = cri().Stop(one.id(), std::chrono::seconds(0));
      last = last ? cri().Remove(one.id()) : std::move(last);
    }
    return gone;
  })) << last.error_or(Error{}).message;
}

// The cgroups of pods are the kubelet's, here: ours. Not removed when something
// is left in one, which then shows.
void CriTest::RemoveParents() {
  for (const std::string& parent : parents_) {
    for (const std::string& folder : CgroupFolders(parent)) {
      Eventually([&] { return rmdir(folder.c_str()) == 0; }, std::chrono::seconds(2));
    }
  }
}

PodConfig CriTest::Pod(const std::string& suffix) {
  PodConfig config;
  config.name = Id(suffix);
  config.runtime_handler = handler();
  if (settings().vmm()) {
    config.hostname = "pod";  // A machine has no part in the node's network.
  }
  config.log_directory = settings().root + "/logs/" + config.name;
  std::filesystem::create_directories(config.log_directory);
  // Below the run's own cgroup, where leftovers are looked for.
  config.cgroup_parent = "/" + settings().ns + "/" + config.name;
  parents_.push_back(config.cgroup_parent);
  return config;
}

std::string CriTest::RunPod(const PodConfig& config) {
  const auto pod = cri().RunPod(config);
  EXPECT_TRUE(pod) << pod.error_or(Error{}).message;
  return pod.value_or("");
}

std::string CriTest::RunContainerIn(const std::string& pod, const PodConfig& config,
                                    const std::string& name, const Words& command,
                                    int64_t memory_limit_bytes) {
  ContainerConfig container;
  container.name = name;
  container.command = command;
  container.memory_limit_bytes = memory_limit_bytes;
  return RunContainerIn(pod, config, container);
}

std::string CriTest::RunContainerIn(const std::string& pod, const PodConfig& config,
                                    const ContainerConfig& container) {
  const auto id = cri().Run(pod, config, container);
  EXPECT_TRUE(id) << id.error_or(Error{}).message;
  return id.value_or("");
}

ExecResult CriTest::Exec(const std::string& id, const Words& command) {
  auto result = cri().Exec(id, command);
  EXPECT_TRUE(result) << result.error_or(Error{}).message;
  return std::move(result).value_or(ExecResult{-1, "", ""});
}

std::optional<CriStream> CriTest::OpenExec(const std::string& id, const Words& command,
                                           bool terminal) {
  return OpenStream(cri().ExecStream(id, command, terminal));
}

std::optional<CriStream> CriTest::OpenAttach(const std::string& id, bool terminal) {
  return OpenStream(cri().AttachStream(id, terminal));
}

cri::ContainerStatus CriTest::StatusOf(const std::string& id) {
  const auto response = cri().ContainerStatus(id);
  EXPECT_TRUE(response) << response.error_or(Error{}).message;
  return response ? response->status() : cri::ContainerStatus();
}

cri::ContainerStatus CriTest::WaitForEnd(const std::string& id) {
  EXPECT_TRUE(Eventually([&] { return StatusOf(id).state() == cri::CONTAINER_EXITED; }));
  return StatusOf(id);
}

pid_t CriTest::PidOf(const std::string& id) {
  const auto response = cri().ContainerStatus(id);
  EXPECT_TRUE(response) << response.error_or(Error{}).message;
  const std::string info = response ? response->info().at("info") : "";
  const size_t at = info.find("\"pid\":");
  return at == std::string::npos ? 0 : static_cast<pid_t>(std::stol(info.substr(at + 6)));
}

}  // namespace gantry::e2e
