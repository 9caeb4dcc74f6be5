// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/pod_config.h>
#include <gantry/protowire.h>

namespace gantry {
namespace {

using testing::ElementsAre;

std::string Message(const std::function<void(ProtoWriter&)>& fill) {
  ProtoWriter out;
  fill(out);
  return out.Take();
}

std::string Entry(const std::string& key, const std::string& value) {
  return Message([&](ProtoWriter& out) {
    out.Text(1, key);
    out.Text(2, value);
  });
}

/// A pod as the kubelet describes one with a user namespace.
std::string WholePod() {
  const std::string users = Message([](ProtoWriter& out) {
    out.Varint(1, 0);
    out.Bytes(2, Message([](ProtoWriter& map) {
                map.Varint(1, 100'000);
                map.Varint(2, 0);
                map.Varint(3, 65'536);
              }));
  });
  const std::string namespaces = Message([&](ProtoWriter& out) {
    out.Varint(1, 2);
    out.Varint(2, 1);
    out.Bytes(5, users);
  });
  const std::string security = Message([&](ProtoWriter& out) {
    out.Bytes(1, namespaces);
    out.Bool(4, true);
    out.Bool(6, true);
  });
  const std::string resources = Message([](ProtoWriter& out) {
    out.Int(1, 100'000);
    out.Int(2, -1);
    out.Int(3, 512);
    out.Int(4, 1 << 20);
    out.Text(6, "0-3");
    out.Bytes(9, Entry("memory.high", "max"));
  });
  const std::string linux_part = Message([&](ProtoWriter& out) {
    out.Text(1, "/kubepods/pod1");
    out.Bytes(2, security);
    out.Bytes(3, Entry("net.core.somaxconn", "512"));
    out.Bytes(4, Message([](ProtoWriter& overhead) { overhead.Int(4, 4096); }));
    out.Bytes(5, resources);
  });
  return Message([&](ProtoWriter& out) {
    out.Bytes(1, Message([](ProtoWriter& meta) {
                meta.Text(1, "web");
                meta.Text(2, "uid-1");
                meta.Text(3, "default");
              }));
    out.Text(2, "web-0");
    out.Bytes(4, Message([](ProtoWriter& dns) {
                dns.Text(1, "10.0.0.10");
                dns.Text(2, "svc");
                dns.Text(3, "ndots:5");
              }));
    out.Bytes(6, Entry("app", "web"));
    out.Bytes(7, Entry("note", "x"));
    out.Bytes(8, linux_part);
    out.Text(99, "of a later version");
  });
}

TEST(PodConfig, IsReadWhole) {
  const auto config = ParsePodConfig(WholePod());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "web");
  EXPECT_EQ(config->uid, "uid-1");
  EXPECT_EQ(config->ns, "default");
  EXPECT_EQ(config->hostname, "web-0");
  EXPECT_THAT(config->dns.servers, ElementsAre("10.0.0.10"));
  EXPECT_THAT(config->dns.searches, ElementsAre("svc"));
  EXPECT_THAT(config->dns.options, ElementsAre("ndots:5"));
  EXPECT_EQ(config->labels.at("app"), "web");
  EXPECT_EQ(config->annotations.at("note"), "x");
  EXPECT_EQ(config->cgroup_parent, "/kubepods/pod1");
  EXPECT_EQ(config->sysctls.at("net.core.somaxconn"), "512");
  EXPECT_EQ(config->network, NamespaceMode::kNode);
  EXPECT_EQ(config->pid, NamespaceMode::kContainer);
  EXPECT_EQ(config->ipc, NamespaceMode::kPod);
  EXPECT_EQ(config->user, NamespaceMode::kPod);
  ASSERT_EQ(config->uids.size(), 1U);
  EXPECT_EQ(config->uids[0].host_id, 100'000U);
  EXPECT_EQ(config->uids[0].length, 65'536U);
  EXPECT_TRUE(config->readonly_rootfs);
  EXPECT_TRUE(config->privileged);
  EXPECT_EQ(config->overhead.memory_limit, 4096);
  EXPECT_EQ(config->resources.cpu_period, 100'000U);
  EXPECT_EQ(config->resources.cpu_quota, -1);
  EXPECT_EQ(config->resources.cpu_shares, 512U);
  EXPECT_EQ(config->resources.memory_limit, 1 << 20);
  EXPECT_EQ(config->resources.memory_swap_limit, std::nullopt);
  EXPECT_EQ(config->resources.cpuset_cpus, "0-3");
  EXPECT_EQ(config->resources.unified.at("memory.high"), "max");
}

TEST(PodConfig, OfNothingIsAPodOfWhichNothingIsAsked) {
  const auto config = ParsePodConfig("");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->network, NamespaceMode::kPod);
  EXPECT_EQ(config->user, NamespaceMode::kNode) << "unless somebody asks for one";
  EXPECT_TRUE(config->dns.empty());
}

TEST(PodConfig, CutOffAnywhereIsNeverReadWrong) {
  const std::string whole = WholePod();
  int malformed = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto config = ParsePodConfig(std::string_view(whole).substr(0, size));
    malformed += config ? 0 : 1;
    if (!config) {
      EXPECT_EQ(config.error().code, Code::kInvalidArgument);
    }
  }
  EXPECT_GT(malformed, 100);
}

TEST(PodResources, AreReadAlone) {
  const auto resources = ParsePodResources(Message([](ProtoWriter& out) { out.Int(10, 8192); }));
  ASSERT_TRUE(resources);
  EXPECT_EQ(resources->memory_swap_limit, 8192);
  EXPECT_FALSE(ParsePodResources("\x0a"));
}

}  // namespace
}  // namespace gantry
