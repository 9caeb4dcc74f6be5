// SPDX-License-Identifier: Apache-2.0
//
// What the containers of a pod share, and what they see of the node.
#include <unistd.h>

#include <array>
#include <filesystem>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {
namespace {

class CriNamespaces : public CriPodTest {
 protected:
  std::string Link(const std::string& id, const std::string& space) {
    return Exec(id, {"readlink", "/proc/self/ns/" + space}).out;
  }

  static std::string NodesLink(const std::string& space) {
    return std::filesystem::read_symlink("/proc/self/ns/" + space).string() + "\n";
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, CriNamespaces, kSandboxers, SandboxerName);

TEST_P(CriNamespaces, HaveANameOfTheirOwn) {
  PodConfig config = Pod();
  config.hostname = "web-0";
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1000"});
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1000"});
  EXPECT_EQ(Exec(first, {"hostname"}).out, "web-0\n");
  EXPECT_EQ(Exec(second, {"cat", "/etc/hostname"}).out, "web-0\n");
  EXPECT_NE(Exec(first, {"cat", "/etc/hosts"}).out.find("localhost"), std::string::npos);
  EXPECT_EQ(Link(first, "net"), Link(second, "net"));
  EXPECT_NE(Link(first, "net"), NodesLink("net"));
  EXPECT_NE(Link(first, "uts"), NodesLink("uts"));
}

TEST_P(CriNamespaces, LetAnyUserReadTheirFiles) {
  PodConfig config = Pod();
  config.hostname = "web-0";
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  for (const char* file : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    EXPECT_EQ(Exec(id, {"stat", "-c", "%a", file}).out, "644\n") << file;
  }
  EXPECT_EQ(Exec(id, {"sh", "-c", "umask"}).out, "0022\n");
}

TEST_P(CriNamespaces, AskTheServersOfThePod) {
  PodConfig config = Pod();
  config.dns_servers = {"10.9.8.7"};
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"cat", "/etc/resolv.conf"}).out, "nameserver 10.9.8.7\n");
}

TEST_P(CriNamespaces, ShareMemory) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1000"});
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1000"});
  EXPECT_EQ(Exec(first, {"sh", "-c", "echo seen > /dev/shm/note"}).exit_code, 0);
  EXPECT_EQ(Exec(second, {"cat", "/dev/shm/note"}).out, "seen\n");
  EXPECT_EQ(Link(first, "ipc"), Link(second, "ipc"));
  EXPECT_NE(Link(first, "ipc"), NodesLink("ipc"));
}

TEST_P(CriNamespaces, HaveOneMountOfTheirMemory) {
  const PodConfig config = Pod();
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"grep", "-c", "^shm /dev/shm tmpfs", "/proc/mounts"}).out, "1\n");
}

TEST_P(CriNamespaces, HaveTheirOwnSysctls) {
  PodConfig config = Pod();
  config.hostname = "tuned";
  config.sysctls = {{"kernel.shmmni", "1234"}, {"net.ipv4.ip_unprivileged_port_start", "99"}};
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  EXPECT_EQ(Exec(id, {"cat", "/proc/sys/kernel/shmmni"}).out, "1234\n");
  EXPECT_EQ(Exec(id, {"cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start"}).out, "99\n");
}

TEST_P(CriNamespaces, SeeEachOthersProcessesWhenAsked) {
  PodConfig config = Pod();
  config.pid = cri::POD;
  const std::string pod = RunPod(config);
  const std::string first = RunContainerIn(pod, config, "first", {"sleep", "1001"});
  const std::string second = RunContainerIn(pod, config, "second", {"sleep", "1002"});
  EXPECT_NE(Exec(first, {"ps"}).out.find("sleep 1002"), std::string::npos);
  EXPECT_NE(Exec(second, {"ps"}).out.find("sleep 1001"), std::string::npos);
  EXPECT_NE(Link(first, "pid"), NodesLink("pid"));
}

TEST_P(CriNamespaces, AreTheNodesWhenAsked) {
  PodConfig config = Pod();
  config.pid = cri::NODE;
  config.ipc = cri::NODE;
  const std::string pod = RunPod(config);
  const std::string id = RunContainerIn(pod, config, "one", {"sleep", "1000"});
  for (const char* space : {"net", "ipc", "uts", "pid"}) {
    EXPECT_EQ(Link(id, space), NodesLink(space)) << space;
  }
}

}  // namespace
}  // namespace gantry::e2e
