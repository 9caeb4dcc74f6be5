// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/spec/spec.h"

#include <unistd.h>

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Parsed(const std::string& text) { return Json::parse(text); }

Json Bind(const std::string& destination, const std::string& source, Json options) {
  return {{"destination", destination},
          {"type", "bind"},
          {"source", source},
          {"options", std::move(options)}};
}

Result<Spec> Made(const Json& document, bool is_sub = true, const Overlay& overlay = {}) {
  return MakeSpec({.json = document.dump(),
                   .rootfs = "/rootfs",
                   .bundle = "/bundle",
                   .kind = is_sub ? ContainerKind::kFurther : ContainerKind::kAlone},
                  overlay);
}

Json WithNamespaces(Json namespaces) {
  return {{"linux", {{"namespaces", std::move(namespaces)}}}};
}

std::vector<std::string> Types(const Spec& spec) {
  std::vector<std::string> types;
  const Json document = Parsed(spec.json);
  for (const Json& one : document["linux"]["namespaces"]) {
    types.push_back(one["type"]);
  }
  return types;
}

TEST(GvisorSpec, OfALaterContainerLeavesItsPidNamespaceToItsStart) {
  const Json ipc = {{"type", "ipc"}};
  const auto own = Made(WithNamespaces({{{"type", "pid"}}, ipc}));
  ASSERT_TRUE(own);
  EXPECT_EQ(own->pids, PidNamespace::kOwn);
  EXPECT_THAT(Types(*own), ElementsAre("ipc"));
  const auto shared = Made(WithNamespaces({{{"type", "pid"}, {"path", "/proc/7/ns/pid"}}, ipc}));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->pids, PidNamespace::kShared);
  EXPECT_THAT(Types(*shared), ElementsAre("ipc"));
  const auto pods = Made(WithNamespaces({ipc}));
  ASSERT_TRUE(pods);
  EXPECT_EQ(pods->pids, PidNamespace::kPods);
}

TEST(GvisorSpec, OfARootKeepsItsPidNamespace) {
  const auto spec = Made(WithNamespaces({{{"type", "pid"}}}), false);
  ASSERT_TRUE(spec);
  EXPECT_THAT(Types(*spec), ElementsAre("pid"));
}

TEST(GvisorSpec, NamesAPidNamespace) {
  const auto spec = Made(WithNamespaces({{{"type", "pid"}}}));
  ASSERT_TRUE(spec);
  const auto named = WithPidNamespace(spec->json, "container:one");
  ASSERT_TRUE(named);
  EXPECT_EQ(Parsed(*named)["linux"]["namespaces"],
            Json({{{"type", "pid"}, {"path", "container:one"}}}));
  EXPECT_EQ(WithPidNamespace(spec->json, ""), spec->json);
  EXPECT_EQ(WithPidNamespace("7", "one").error().code, Code::kInternal);
}

/// Whether the sentry gets the profile of container "app" that has this annotation.
bool KeepsProfile(const std::string& annotation, const std::string& value, bool is_sub = true) {
  const auto spec =
      Made({{"annotations", {{"io.kubernetes.cri.container-name", "app"}, {annotation, value}}},
            {"linux", {{"seccomp", {{"defaultAction", "SCMP_ACT_ERRNO"}}}}}},
           is_sub);
  EXPECT_TRUE(spec);
  return spec && Parsed(spec->json)["linux"].contains("seccomp");
}

TEST(GvisorSpec, HasNoSeccompProfileThatIsTheRuntimesOwn) {
  for (const bool is_sub : {true, false}) {
    EXPECT_FALSE(KeepsProfile("dev.gvisor.internal.seccomp.app", "RuntimeDefault", is_sub));
    EXPECT_TRUE(KeepsProfile("dev.gvisor.internal.seccomp.app", "Localhost", is_sub));
    EXPECT_TRUE(KeepsProfile("dev.gvisor.internal.seccomp.other", "RuntimeDefault", is_sub));
  }
  const auto nameless = Made({{"annotations", {{"dev.gvisor.internal.seccomp.", "RuntimeDefault"}}},
                              {"linux", {{"seccomp", Json::object()}}}});
  ASSERT_TRUE(nameless);
  EXPECT_TRUE(Parsed(nameless->json)["linux"].contains("seccomp"));
}

TEST(GvisorSpec, TellsWhereItsNetworkIs) {
  const auto spec = Made(WithNamespaces({{{"type", "network"}, {"path", "/run/netns/one"}}}));
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->has_netns);
  EXPECT_EQ(spec->netns_path, "/run/netns/one");
  EXPECT_FALSE(Made(WithNamespaces(Json::array()))->has_netns);
}

TEST(GvisorSpec, ListsTheRootAndItsBindMounts) {
  const auto spec = Made({{"mounts",
                           {{{"destination", "/proc"}, {"type", "proc"}, {"source", "proc"}},
                            Bind("/data", "/srv/data", {"rbind", "rw"}),
                            Bind("/etc/hosts", "hosts", {"ro"})}}});
  ASSERT_TRUE(spec);
  ASSERT_EQ(spec->mounts.size(), 3U);
  EXPECT_EQ(spec->mounts[0].source, "/rootfs");
  EXPECT_EQ(spec->mounts[1].source, "/srv/data");
  EXPECT_EQ(spec->mounts[2].source, "/bundle/hosts") << "relative to the bundle";
  EXPECT_TRUE(spec->NeedsGofer());
}

TEST(GvisorSpec, OfAnImageNeedsNoGofer) {
  const auto spec = Made({{"annotations",
                           {{"dev.gvisor.spec.rootfs.type", "erofs"},
                            {"dev.gvisor.spec.rootfs.source", "/images/one.erofs"}}}});
  ASSERT_TRUE(spec);
  EXPECT_FALSE(spec->NeedsGofer());
  EXPECT_EQ(spec->mounts[0].source, "/images/one.erofs");
  EXPECT_EQ(spec->mounts[0].conf.upper, MountConf::Upper::kMemory);
}

TEST(GvisorSpec, RefusesAnImageThatNoneCanBe) {
  for (const char* type : {"ext4", "EROFS"}) {
    const auto spec = Made({{"annotations",
                             {{"dev.gvisor.spec.rootfs.type", type},
                              {"dev.gvisor.spec.rootfs.source", "/images/one"}}}});
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
    EXPECT_THAT(spec.error().message,
                HasSubstr("'dev.gvisor.spec.rootfs.type': '" + std::string(type) + "'"));
  }
  EXPECT_FALSE(Made({{"annotations",
                      {{"dev.gvisor.spec.rootfs.type", "erofs"},
                       {"dev.gvisor.spec.rootfs.source", "relative"}}}}));
}

TEST(GvisorSpec, OfARootTellsWhetherThereIsIpv6) {
  const auto with = [](const char* value, bool is_sub = false) {
    return Made({{"linux", {{"sysctl", {{"net.ipv6.conf.all.disable_ipv6", value}}}}}}, is_sub);
  };
  EXPECT_FALSE(Made(Json::object(), false)->no_ipv6);
  EXPECT_FALSE(with("0")->no_ipv6);
  EXPECT_TRUE(with("1")->no_ipv6);
  EXPECT_FALSE(with("1", true)->no_ipv6);
  const auto wrong = with("abc");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_THAT(wrong.error().message, HasSubstr("'net.ipv6.conf.all.disable_ipv6': 'abc'"));
}

/// As a new UTS namespace of the kernel's.
TEST(GvisorSpec, OfARootWithoutANameHasTheNodes) {
  std::array<char, 256> node{};
  ASSERT_EQ(gethostname(node.data(), node.size() - 1), 0);
  EXPECT_EQ(Parsed(Made(Json::object(), false)->json)["hostname"], node.data());
  EXPECT_EQ(Parsed(Made({{"hostname", ""}}, false)->json)["hostname"], node.data());
  EXPECT_EQ(Parsed(Made({{"hostname", "own"}}, false)->json)["hostname"], "own");
  EXPECT_FALSE(Parsed(Made(Json::object(), true)->json).contains("hostname"));
}

TEST(GvisorSpec, HasNoLabelOfSelinux) {
  const auto spec =
      Made({{"process", {{"selinuxLabel", "system_u:object_r:x:s0"}, {"args", {"true"}}}}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(Parsed(spec->json)["process"], Json({{"args", {"true"}}}));
}

TEST(GvisorSpec, TellsOfAMountWithOtherIds) {
  const Json one = {{{"hostID", 1000}, {"containerID", 0}, {"size", 10}}};
  const Json other = {{{"hostID", 2000}, {"containerID", 0}, {"size", 10}}};
  Json document = {{"linux", {{"uidMappings", one}, {"gidMappings", one}}},
                   {"mounts", {Bind("/data", "/srv/data", {"rbind"})}}};
  document["mounts"][0]["uidMappings"] = one;
  document["mounts"][0]["gidMappings"] = one;
  EXPECT_THAT(Made(document)->mapped_mount, IsEmpty());
  document["mounts"][0]["gidMappings"] = other;
  EXPECT_EQ(Made(document)->mapped_mount, "/data");
}

TEST(GvisorSpec, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "7", "{"}) {
    const auto spec = MakeSpec({.json = text, .rootfs = "/r", .bundle = "/b"}, {});
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Code::kInvalidArgument);
  }
}

TEST(GvisorSpec, StandsWhatHasAnotherType) {
  for (const char* text :
       {R"({"mounts": 7, "linux": [], "annotations": "x", "process": null, "root": []})",
        R"({"mounts": [7, null], "linux": {"namespaces": [1, {"type": 2}]}})",
        R"({"linux": {"uidMappings": [{"hostID": "x"}], "gidMappings": {}}})"}) {
    EXPECT_TRUE(MakeSpec({.json = text, .rootfs = "/r", .bundle = "/b"}, {})) << text;
  }
}

Volume VolumeOf(Volume::Kind kind, const std::string& source) {
  return {.name = "data",
          .kind = kind,
          .fields = {{"type", kind == Volume::Kind::kHost ? "bind" : "tmpfs"},
                     {"share", "pod"},
                     {"source", source}}};
}

Result<Spec> MadeWith(const Json& document, std::vector<Volume> volumes, bool is_sub = true) {
  return MakeSpec({.json = document.dump(),
                   .rootfs = "/rootfs",
                   .bundle = "/bundle",
                   .kind = is_sub ? ContainerKind::kFurther : ContainerKind::kAlone,
                   .volumes = std::move(volumes)},
                  {});
}

TEST(GvisorSpec, HasAVolumeInMemoryAsATmpfs) {
  const auto spec = MadeWith(
      {{"mounts", {Bind("/data", "/v/data", {"rbind", "ro"}), Bind("/other", "/v/other", {"rw"})}}},
      {VolumeOf(Volume::Kind::kMemory, "/v/data")});
  ASSERT_TRUE(spec);
  EXPECT_EQ(Parsed(spec->json)["mounts"][0], Json({{"destination", "/data"},
                                                   {"type", "tmpfs"},
                                                   {"source", "/v/data"},
                                                   {"options", Json::array({"ro"})}}))
      << "by its source the sentry knows which it is";
  ASSERT_EQ(spec->mounts.size(), 2U) << "no file of the host's";
  EXPECT_EQ(spec->mounts[1].source, "/v/other");
}

TEST(GvisorSpec, HasAVolumeOnDiskAsAFileInIt) {
  const Json mount = Bind("/data", "/v/data", {"rbind", "ro"});
  const auto spec = MadeWith({{"mounts", {mount}}}, {VolumeOf(Volume::Kind::kFile, "/v/data")});
  ASSERT_TRUE(spec);
  EXPECT_EQ(Parsed(spec->json)["mounts"][0], mount);
  ASSERT_EQ(spec->mounts.size(), 2U);
  EXPECT_EQ(spec->mounts[1].conf.Text(), "none:self");
  EXPECT_TRUE(spec->mounts[1].is_pods);
  EXPECT_EQ(spec->Filestores(), 2U) << "the root's, too";
}

TEST(GvisorSpec, HasTheHostsVolumesFromAGofer) {
  const auto spec = MadeWith({{"mounts", {Bind("/data", "/v/data", {"rw"})}}},
                             {VolumeOf(Volume::Kind::kHost, "/v/data")});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->mounts[1].conf.Text(), "lisafs:none") << "what is written is in the volume";
  EXPECT_FALSE(spec->mounts[1].is_pods);
}

TEST(GvisorSpec, OfARootTellsTheSentryOfVolumes) {
  const std::vector<Volume> volumes = {VolumeOf(Volume::Kind::kMemory, "/v/data")};
  const Json document = {
      {"annotations", {{"dev.gvisor.spec.mount.data.type", "bind"}, {"a", "b"}}}};
  const auto root = MadeWith(document, volumes, false);
  ASSERT_TRUE(root);
  EXPECT_EQ(Parsed(root->json)["annotations"],
            Json({{"a", "b"},
                  {"dev.gvisor.spec.mount.data.type", "tmpfs"},
                  {"dev.gvisor.spec.mount.data.share", "pod"},
                  {"dev.gvisor.spec.mount.data.source", "/v/data"}}));
  const auto further = MadeWith(document, volumes);
  ASSERT_TRUE(further);
  EXPECT_EQ(Parsed(further->json)["annotations"], document["annotations"]) << "nobody reads them";
}

TEST(GvisorSpec, OfARootRefusesVolumesThatNoneCanBe) {
  const Json document = {{"annotations", {{"dev.gvisor.spec.mount.data.type", "ext4"}}}};
  const auto root = Made(document, false);
  ASSERT_FALSE(root);
  EXPECT_THAT(root.error().message, HasSubstr("'dev.gvisor.spec.mount.data.type': 'ext4'"));
  EXPECT_TRUE(Made(document)) << "those of a further container are the pod's";
}

TEST(GvisorSpec, OfARootThatSharesItsMemoryHasItInTheSentry) {
  const Json tmpfs = {{"destination", "/dev/shm"}, {"type", "tmpfs"}, {"source", "shm"}};
  const Json document = {{"mounts", {tmpfs, Bind("/dev/shm", "/run/shm", {"rbind", "ro"})}}};
  const auto made = [&](bool shares) {
    return MakeSpec({.json = document.dump(),
                     .rootfs = "/r",
                     .bundle = "/b",
                     .kind = shares ? ContainerKind::kRoot : ContainerKind::kAlone},
                    {})
        .value();
  };
  const Spec alone = made(false);
  EXPECT_THAT(alone.volumes, IsEmpty());
  EXPECT_EQ(alone.mounts.size(), 2U);
  const Spec shared = made(true);
  ASSERT_EQ(shared.volumes.size(), 1U);
  EXPECT_EQ(shared.mounts.size(), 1U);
  const Json root = Parsed(shared.json);
  EXPECT_EQ(root["mounts"][0]["source"], "/run/shm") << "and no other is there";
  EXPECT_EQ(root["mounts"][0]["type"], "tmpfs");
  EXPECT_EQ(root["annotations"]["dev.gvisor.spec.mount.gvisorinternaldevshm.source"], "/run/shm");
  const auto further = MadeWith(document, shared.volumes);
  ASSERT_TRUE(further);
  EXPECT_EQ(Parsed(further->json)["mounts"], root["mounts"]);
}

}  // namespace
}  // namespace gantry::gvisor
