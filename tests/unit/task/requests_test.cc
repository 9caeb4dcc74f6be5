// SPDX-License-Identifier: Apache-2.0
#include "core/task/requests.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/config/config.h"
#include "core/io/process_io.h"
#include "core/pod/pod.h"
#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

GroupPtr GroupOfPod() {
  auto group = std::make_shared<Group>();
  group->ns = *Namespace::Parse("k8s.io");
  group->id = "p1";
  group->account = std::make_shared<async::Account>("p1");
  group->exec_specs = std::make_shared<async::Account>("p1");
  group->grpc_address = "/run/k/containerd.sock";
  group->all_exec_specs = std::make_shared<async::Account>("all");
  return group;
}

std::shared_ptr<Container> FullContainer() {
  auto container = std::make_shared<Container>(*ContainerId::Parse("c1"), GroupOfPod());
  container->bundle = "/b/c1";
  container->rootfs = "/b/c1/rootfs";
  container->checkpoint = "/images/1";
  container->options_json = R"({"a":1})";
  container->netns_path = "/run/netns/p1";
  container->annotations = {{"k", "v"}};
  container->init = std::make_shared<TaskProcess>(*container, ExecId());
  container->init->stdio = {"in", "out", "err", true};
  container->init->SetSaved("kept");
  return container;
}

TEST(Requests, TellABackendAllOfAContainer) {
  const auto container = FullContainer();
  const ContainerRequest request = ContainerRequestOf(*container, "{}");
  EXPECT_EQ(request.id.str(), "c1");
  EXPECT_EQ(request.bundle, "/b/c1");
  EXPECT_EQ(request.spec_json, "{}");
  EXPECT_EQ(request.rootfs, "/b/c1/rootfs");
  EXPECT_TRUE(request.terminal);
  EXPECT_EQ(request.checkpoint, "/images/1");
  EXPECT_EQ(request.options_json, R"({"a":1})");
  EXPECT_EQ(request.init_saved, "kept");
}

TEST(Requests, TellABackendAllOfAnExec) {
  const auto container = FullContainer();
  TaskProcess exec(*container, *ExecId::Parse("e1"));
  exec.SetSpec(R"({"args":[]})");
  exec.stdio.terminal = true;
  exec.SetSaved("kept too");
  const ExecRequest request = ExecRequestOf(exec);
  EXPECT_EQ(request.id.str(), "e1");
  EXPECT_EQ(request.process_json, R"({"args":[]})");
  EXPECT_TRUE(request.terminal);
  EXPECT_EQ(request.saved, "kept too");
}

TEST(Requests, TellABackendAllOfASandboxThatAContainerMakes) {
  const auto container = FullContainer();
  SandboxEntry entry;
  entry.id = *SandboxId::Parse("p1");
  const SandboxRequest request = SandboxRequestOf(entry, *container);
  EXPECT_EQ(request.id.str(), "p1");
  EXPECT_EQ(request.ns.str(), "k8s.io");
  EXPECT_EQ(request.kind, SandboxKind::kPaused);
  EXPECT_EQ(request.bundle, "/b/c1");
  EXPECT_EQ(request.options_json, R"({"a":1})");
  EXPECT_EQ(request.netns_path, "/run/netns/p1");
  EXPECT_EQ(request.annotations.at("k"), "v");
  EXPECT_EQ(request.containerd_address, "/run/k/containerd.sock");
}

TEST(Requests, TellABackendWhichKindOfSandboxAContainerMakes) {
  auto group = GroupOfPod();
  SandboxEntry entry;
  entry.id = *SandboxId::Parse("p1");
  Container alone(*ContainerId::Parse("p1"), group);
  EXPECT_EQ(SandboxRequestOf(entry, alone).kind, SandboxKind::kImplied);
  alone.annotations = {{"io.kubernetes.cri.container-type", "sandbox"}};
  EXPECT_EQ(SandboxRequestOf(entry, alone).kind, SandboxKind::kPaused);
}

TEST(Requests, TellABackendAllOfAPod) {
  Pod pod(*SandboxId::Parse("p1"), GroupOfPod());
  pod.bundle = "/b/p1";
  pod.options_json = R"({"a":1})";
  pod.netns_path = "/run/netns/p1";
  pod.annotations = {{"k", "v"}};
  pod.config = "config";
  const SandboxRequest request = SandboxRequestOf(pod);
  EXPECT_EQ(request.id.str(), "p1");
  EXPECT_EQ(request.ns.str(), "k8s.io");
  EXPECT_EQ(request.kind, SandboxKind::kPauseless);
  EXPECT_EQ(request.bundle, "/b/p1");
  EXPECT_EQ(request.options_json, R"({"a":1})");
  EXPECT_EQ(request.netns_path, "/run/netns/p1");
  EXPECT_EQ(request.annotations.at("k"), "v");
  EXPECT_EQ(request.pod_config, "config");
  EXPECT_EQ(request.containerd_address, "/run/k/containerd.sock");
}

TEST(Requests, NameAnExecsStreamsAfterItAndHaveThemOnPipesOfTheirOwn) {
  const auto container = FullContainer();
  config::Config config;
  config.timeouts.stdio_drain = std::chrono::milliseconds(7);
  TaskProcess exec(*container, *ExecId::Parse("e1"));
  exec.stdio = {"in", "out", "err", false};
  const io::StdioOptions of_init = StdioOptionsOf(*container->init, config);
  const io::StdioOptions of_exec = StdioOptionsOf(exec, config);
  EXPECT_EQ(of_init.id, "c1");
  EXPECT_EQ(of_exec.id, "e1");
  EXPECT_EQ(of_exec.ns, "k8s.io");
  EXPECT_FALSE(of_init.own_pipes);
  EXPECT_TRUE(of_exec.own_pipes);
  EXPECT_EQ(of_exec.heirs_limit, std::chrono::milliseconds(7));
  EXPECT_EQ(of_exec.account, container->group->account);
  const io::StdioPaths paths = StdioPathsOf(exec);
  EXPECT_EQ(paths.in + paths.out + paths.err, "inouterr");
  EXPECT_FALSE(paths.terminal);
}

}  // namespace
}  // namespace gantry::task
