// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/pods.h"

#include <filesystem>

namespace gantry::node {

void PodTest::SetUp() {
  NodeTest::SetUp();
  if (!HasFatalFailure()) {
    Connect();
  }
}

void PodTest::Connect() {
  client_ = std::make_unique<e2e::CriClient>("/run/containerd/containerd.sock", e2e::kLong);
  ASSERT_TRUE(e2e::Eventually([&] {
    return client_->HasImage(kImage).value_or(false) &&
           client_->HasImage("registry.k8s.io/pause:gantry").value_or(false);
  })) << client_->Version().error_or(Error{}).message;
}

void PodTest::TearDown() {
  for (const auto& [pod, name] : pods_) {
    const Status stopped = cri().StopPod(pod);
    EXPECT_TRUE(stopped) << stopped.error().message;
    const Status removed = cri().RemovePod(pod);
    EXPECT_TRUE(removed) << removed.error().message;
    EXPECT_TRUE(e2e::Eventually([&] { return Leftovers(pod).empty(); })) << Leftovers(pod);
    EXPECT_TRUE(e2e::Eventually([&] {
      return e2e::FindNames(SliceFolder(name), "cri-containerd").empty();
    })) << e2e::FindNames(SliceFolder(name), "cri-containerd").front();
    // The kubelet's, here: ours.
    EXPECT_EQ(Systemctl({"stop", Slice(name)}).status, 0);
  }
  NodeTest::TearDown();
}

e2e::PodConfig PodTest::Pod(const std::string& name) {
  e2e::PodConfig config;
  config.name = name;
  config.log_directory = "/var/log/pods/" + name;
  std::filesystem::create_directories(config.log_directory);
  config.cgroup_parent = Slice(name);
  config.runtime_handler = Handler();
  return config;
}

std::string PodTest::RunPod(const e2e::PodConfig& config) {
  const auto pod = cri().RunPod(config);
  EXPECT_TRUE(pod) << pod.error_or(Error{}).message;
  if (pod) {
    pods_.emplace_back(*pod, config.name);
  }
  return pod.value_or("");
}

std::string PodTest::RunContainer(const std::string& pod, const e2e::PodConfig& config,
                                  const Words& command) {
  e2e::ContainerConfig container;
  container.name = "one";
  container.command = command;
  container.memory_limit_bytes = 64 << 20;
  const auto id = cri().Run(pod, config, container);
  EXPECT_TRUE(id) << id.error_or(Error{}).message;
  return id.value_or("");
}

}  // namespace gantry::node
