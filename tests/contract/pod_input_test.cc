// SPDX-License-Identifier: Apache-2.0
//
// What no client should ask the Sandbox service to make: a clear error, nothing left, and the pod
// can be made after it.
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include <gantry/pod_config.h>
#include <gantry/protowire.h>

#include "tests/contract/harness/escapes.h"
#include "tests/contract/harness/own_network.h"
#include "tests/contract/harness/pod_contract.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kConfigType = "runtime.v1.PodSandboxConfig";

/// A network namespace; gone with this.
class Network {
 public:
  Network() : holder_({"unshare", "-n", "sleep", "1000"}) {
    e2e::Eventually([this] { return IdOf(path()) != IdOf("/proc/self/ns/net"); });
  }

  std::string path() const { return "/proc/" + std::to_string(holder_.pid()) + "/ns/net"; }

 private:
  static std::string IdOf(const std::string& path) {
    std::error_code error;
    return std::filesystem::read_symlink(path, error).string();
  }

  e2e::Program holder_;
};

/// What a `PodSandboxConfig` is made of here.
struct ConfigParts {
  std::string name = "pod";
  std::string hostname = "host";
  std::string cgroup_parent{};
  std::string sysctl{};
  std::string annotation{};
  NamespaceMode network = OwnNetworks() ? NamespaceMode::kPod : NamespaceMode::kNode;
  std::optional<NamespaceMode> user{};
};

std::string Entry(std::string_view key, std::string_view value) {
  ProtoWriter entry;
  entry.Bytes(1, key);
  entry.Bytes(2, value);
  return entry.Take();
}

std::string Encode(const ConfigParts& parts) {
  ProtoWriter metadata;
  metadata.Text(1, parts.name);
  metadata.Text(2, parts.name);
  metadata.Text(3, parts.name);
  ProtoWriter namespaces;
  namespaces.Varint(1, static_cast<uint64_t>(parts.network));
  namespaces.Varint(2, static_cast<uint64_t>(NamespaceMode::kContainer));
  if (parts.user) {
    ProtoWriter user;
    user.Varint(1, static_cast<uint64_t>(*parts.user));
    namespaces.Bytes(5, user.str());
  }
  ProtoWriter security;
  security.Bytes(1, namespaces.str());
  ProtoWriter on_linux;
  on_linux.Text(1, parts.cgroup_parent);
  on_linux.Bytes(2, security.str());
  if (!parts.sysctl.empty()) {
    on_linux.Bytes(3, Entry(parts.sysctl, "1"));
  }
  ProtoWriter config;
  config.Bytes(1, metadata.str());
  config.Text(2, parts.hostname);
  config.Text(3, parts.name);
  if (!parts.annotation.empty()) {
    config.Bytes(7, Entry("filler", parts.annotation));
  }
  config.Bytes(8, on_linux.str());
  return config.Take();
}

class PodInput : public PodContract {
 protected:
  static Status CreateWith(const PodBox& pod, const sandbox_pb::CreateSandboxRequest& request) {
    return Plain(pod.client().Call<sandbox_pb::CreateSandboxResponse>("CreateSandbox", request));
  }

  static sandbox_pb::CreateSandboxRequest With(const PodBox& pod, const std::string& config) {
    sandbox_pb::CreateSandboxRequest request = pod.CreateRequest();
    request.mutable_options()->set_value(config);
    return request;
  }

  /// Either is right; and nothing came of what was refused.
  static void ExpectRefusedOrRuns(const PodBox& pod,
                                  const sandbox_pb::CreateSandboxRequest& request,
                                  const std::string& what) {
    SCOPED_TRACE(what.substr(0, 40));
    Status made = CreateWith(pod, request);
    if (made) {
      made = Plain(pod.Start());
      EXPECT_OK(pod.Shutdown());
    } else {
      EXPECT_CODE(made, kInvalidArgument);
    }
    EXPECT_LT(MessageOf(made).size(), 20'000U);
    ExpectNothing(pod);
  }

  static void ExpectNothing(const PodBox& pod) {
    EXPECT_CODE(pod.GetStatus(), kNotFound);
    EXPECT_TRUE(e2e::MountsBelow(pod.bundle()).empty());
    for (const std::string& name : e2e::ListFolder(pod.bundle())) {
      EXPECT_THAT(name, AnyOf("rootfs", "address"));
    }
  }
};

INSTANTIATE_CONTRACT(PodInput);

TEST_P(PodInput, WithoutAConfig) {
  const PodBox& pod = AnnouncedPod();
  sandbox_pb::CreateSandboxRequest request = pod.CreateRequest();
  request.clear_options();
  ExpectRefusedOrRuns(pod, request, "no options");
  ExpectRefusedOrRuns(pod, With(pod, ""), "no bytes");
  EXPECT_OK(pod.Create());
}

TEST_P(PodInput, WithAConfigThatIsCutOff) {
  const PodBox& pod = AnnouncedPod();
  const std::string whole = Encode({});
  for (size_t length = 0; length < whole.size(); ++length) {
    ExpectRefusedOrRuns(pod, With(pod, whole.substr(0, length)), std::to_string(length));
  }
  EXPECT_CODE(CreateWith(pod, With(pod, whole.substr(0, whole.size() - 1))), kInvalidArgument);
  EXPECT_OK(pod.Create());
}

TEST_P(PodInput, WithAConfigOfAnotherVersion) {
  const PodBox& pod = AnnouncedPod();
  sandbox_pb::CreateSandboxRequest request = pod.CreateRequest();
  for (const char* type : {"runtime.v9.PodSandboxConfig", "runtime.v1alpha2.PodSandboxConfig"}) {
    request.mutable_options()->set_type_url(type);
    EXPECT_CODE(CreateWith(pod, request), kInvalidArgument) << type;
    ExpectNothing(pod);
  }
  // Of a later minor version: fields that nobody knows here.
  ProtoWriter later;
  later.Varint(100, 7);
  later.Bytes(101, "text");
  later.Double(102, 0.5);
  request = With(pod, pod.CreateRequest().options().value() + later.str());
  request.mutable_options()->set_type_url(std::string("types.googleapis.com/") + kConfigType);
  EXPECT_OK(CreateWith(pod, request));
  EXPECT_OK(pod.Start());
}

TEST_P(PodInput, WithNamesThatEscape) {
  const PodBox& pod = AnnouncedPod();
  const Network network;
  for (const std::string& name : Escapes()) {
    for (const ConfigParts& parts :
         {ConfigParts{.name = name}, ConfigParts{.hostname = name, .network = NamespaceMode::kPod},
          ConfigParts{.sysctl = name, .network = NamespaceMode::kPod}}) {
      sandbox_pb::CreateSandboxRequest request = With(pod, Encode(parts));
      request.set_netns_path(network.path());
      ExpectRefusedOrRuns(pod, request, name);
    }
  }
  EXPECT_TRUE(e2e::FindNames(node().root(), "escape").empty());
  EXPECT_FALSE(std::filesystem::exists("/escape"));
  EXPECT_OK(pod.Create());
}

TEST_P(PodInput, WithCgroupsThatEscape) {
  const PodBox& pod = AnnouncedPod();
  for (const std::string& name : Escapes()) {
    // Below what this test cleans up, where it may be made.
    for (const std::string& parent : {node().cgroup() + "/" + name, "/" + name + "/../../escape"}) {
      if (parent.contains("..") || parent.contains('\0')) {
        EXPECT_CODE(CreateWith(pod, With(pod, Encode({.cgroup_parent = parent}))), kInvalidArgument)
            << parent.substr(0, 80);
        ExpectNothing(pod);
      }
    }
  }
  for (const std::string& folder : e2e::CgroupFolders("/")) {
    EXPECT_FALSE(std::filesystem::exists(folder + "/escape")) << folder;
  }
  EXPECT_OK(pod.Create());
}

TEST_P(PodInput, WithAUserNamespaceOfAContainer) {
  const PodBox& pod = AnnouncedPod();
  for (const NamespaceMode mode : {NamespaceMode::kContainer, NamespaceMode::kTarget}) {
    const Status refused = CreateWith(pod, With(pod, Encode({.user = mode})));
    EXPECT_CODE(refused, kInvalidArgument);
    EXPECT_THAT(MessageOf(refused), HasSubstr("user namespace"));
    ExpectNothing(pod);
  }
  EXPECT_OK(CreateWith(pod, With(pod, Encode({.user = NamespaceMode::kNode}))));
}

TEST_P(PodInput, OfAMegabyteWorks) {
  const PodBox& pod = AnnouncedPod();
  const std::string filler(size_t{1} << 20, 'x');
  sandbox_pb::CreateSandboxRequest request = With(pod, Encode({.annotation = filler}));
  (*request.mutable_annotations())["filler"] = filler;
  ASSERT_OK(CreateWith(pod, request));
  ASSERT_OK(pod.Start());
  node().KillEngine();
  EXPECT_EQ(Got(pod.GetStatus()).state(), "SANDBOX_READY");
  const Box& box = Member(pod, {.args = {"true"}});
  EXPECT_OK(box.Create());
  EXPECT_OK(box.Start());
  EXPECT_OK(box.Wait());
}

TEST_P(PodInput, WithANetworkThatIsGone) {
  std::string gone;
  {
    const Network network;
    gone = network.path();
  }
  const PodBox& pod = AnnouncedPod();
  for (const std::string& path : {gone, std::string("/no/such/net"), node().root(), gone + "/x"}) {
    sandbox_pb::CreateSandboxRequest request = With(pod, Encode({.network = NamespaceMode::kPod}));
    request.set_netns_path(path);
    ASSERT_OK(CreateWith(pod, request));
    const auto started = pod.Start();
    if (backend() != "remote") {
      EXPECT_FALSE(started.has_value()) << path;
      EXPECT_THAT(MessageOf(started), HasSubstr(path));
    }
    ASSERT_OK(pod.Shutdown());
    ExpectNothing(pod);
  }
}

TEST_P(PodInput, WithABundleThatIsNone) {
  const PodBox& pod = AnnouncedPod();
  for (const std::string& path :
       {std::string(), std::string("relative"), pod.bundle() + "/../x", std::string("/"),
        "/" + std::string(10'000, 'x'), pod.bundle() + std::string("\0x", 2)}) {
    sandbox_pb::CreateSandboxRequest request = pod.CreateRequest();
    request.set_bundle_path(path);
    EXPECT_CODE(CreateWith(pod, request), kInvalidArgument) << path.substr(0, 80);
    ExpectNothing(pod);
  }
}

}  // namespace
}  // namespace gantry::contract
