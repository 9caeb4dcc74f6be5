// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/guest_spec.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gantry::vmm {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json Base() {
  return {{"ociVersion", "1.0.2"},
          {"root", {{"path", "rootfs"}}},
          {"process", {{"args", {"sh"}}, {"cwd", "/"}, {"user", {{"uid", 0}, {"gid", 0}}}}},
          {"linux", {{"namespaces", {{{"type", "network"}, {"path", "/run/netns/pod"}}}}}}};
}

Json InGuest(const Json& spec) {
  const auto made = MakeGuestSpec(spec.dump(), false);
  EXPECT_TRUE(made) << made.error().message;
  return Json::parse(made.value_or("{}"));
}

TEST(GuestSpec, HasTheGuestsOwnNamespacesInPlaceOfThePods) {
  Json spec = Base();
  spec["hostname"] = "pod";
  spec["linux"]["namespaces"] = {{{"type", "pid"}},
                                 {{"type", "mount"}, {"path", "/proc/7/ns/mnt"}},
                                 {{"type", "network"}},
                                 {{"type", "ipc"}, {"path", "/proc/7/ns/ipc"}},
                                 {{"type", "uts"}, {"path", "/proc/7/ns/uts"}},
                                 {{"type", "cgroup"}, {"path", ""}}};
  const Json in_guest = InGuest(spec);
  EXPECT_EQ(in_guest["linux"]["namespaces"],
            Json({{{"type", "pid"}}, {{"type", "mount"}}, {{"type", "cgroup"}, {"path", ""}}}));
  EXPECT_FALSE(in_guest.contains("hostname")) << "it would be the pod's";
  spec["linux"]["namespaces"].push_back({{"type", "uts"}});
  EXPECT_EQ(InGuest(spec)["hostname"], "pod") << "its own";
}

TEST(GuestSpec, LeavesOutWhatIsOfTheNode) {
  Json spec = Base();
  spec["hooks"] = {{"prestart", {{{"path", "/bin/true"}}}}};
  spec["annotations"] = {{"secret", "1"}, {"dev.gantry.vmm.device./dev/x", "/run/x"}};
  spec["process"]["apparmorProfile"] = "cri-containerd.apparmor.d";
  spec["process"]["selinuxLabel"] = "system_u";
  spec["linux"]["cgroupsPath"] = "/kubepods/x";
  spec["linux"]["mountLabel"] = "system_u";
  spec["linux"]["sysctl"] = {{"net.core.somaxconn", "1"}};
  spec["linux"]["resources"] = {{"cpu", {{"cpus", "3"}, {"mems", "1"}, {"shares", 512}}},
                                {"unified", {{"cpuset.cpus", "3"}, {"memory.high", "1"}}}};
  Json expected = Base();
  expected["annotations"] = {{"dev.gantry.vmm.device./dev/x", "/run/x"}};
  expected["linux"]["namespaces"] = Json::array();
  expected["linux"]["resources"] = {{"cpu", {{"shares", 512}}},
                                    {"unified", {{"memory.high", "1"}}}};
  EXPECT_EQ(InGuest(spec), expected);
}

TEST(GuestSpec, HasTheHooksOfItsContainerAndTheStateThatTheyRead) {
  Json spec = Base();
  const Json start = {{{"path", "/bin/hook"}}};
  spec["hooks"] = {{"prestart", {{{"path", "/bin/true"}}}}, {"startContainer", start}};
  spec["annotations"] = {{"a", "1"}};
  const Json in_guest = InGuest(spec);
  EXPECT_EQ(in_guest["hooks"], Json({{"startContainer", start}}));
  EXPECT_EQ(in_guest["annotations"], spec["annotations"]);
}

TEST(GuestSpec, HasATerminalWhereItsCallerHasOne) {
  Json spec = Base();
  spec["process"]["terminal"] = true;
  EXPECT_FALSE(InGuest(spec)["process"].contains("terminal"));
  const auto made = MakeGuestSpec(Base().dump(), true);
  ASSERT_TRUE(made);
  EXPECT_EQ(Json::parse(*made)["process"]["terminal"], true);
}

TEST(GuestSpec, OfBadInputIsRefused) {
  for (const std::string text : {"", "[]", "{", "7"}) {
    EXPECT_EQ(MakeGuestSpec(text, false).error().code, Code::kInvalidArgument) << text;
    EXPECT_EQ(MakeGuestProcess(text).error().code, Code::kInvalidArgument) << text;
  }
  EXPECT_EQ(MakeGuestSpec(std::string(100'000, '['), false).error().code, Code::kInvalidArgument);
  EXPECT_EQ(LimitsIn(R"({"memory": {"limit": "x"}})").error().code, Code::kInvalidArgument);
  // What is of another kind than it should be is the guest's maker's to refuse.
  EXPECT_TRUE(MakeGuestSpec(R"({"linux": 7, "process": [], "annotations": null})", true));
  EXPECT_TRUE(
      MakeGuestSpec(R"({"linux": {"namespaces": [7, {"type": 7}], "resources": []}})", true));
}

TEST(GuestSpec, IsRefusedByNameWhereAGuestCannotHaveIt) {
  const auto refusal = [](const Json& spec, bool further = false) {
    const auto parsed = oci::ParseSpec(spec.dump(), "config.json");
    EXPECT_TRUE(parsed) << parsed.error().message;
    const Status checked = CheckSpec(*parsed, further);
    EXPECT_TRUE(checked || checked.error().code == Code::kFailedPrecondition);
    return checked ? std::string("taken") : checked.error().message;
  };
  EXPECT_EQ(refusal(Base()), "taken");
  Json spec = Base();
  spec["linux"]["namespaces"] = Json::array();
  EXPECT_THAT(refusal(spec), HasSubstr("hostNetwork"));
  spec = Base();
  spec["linux"]["namespaces"].push_back({{"type", "user"}});
  spec["linux"]["uidMappings"] = {{{"hostID", 1000}, {"containerID", 0}, {"size", 1}}};
  spec["linux"]["gidMappings"] = spec["linux"]["uidMappings"];
  EXPECT_THAT(refusal(spec), HasSubstr("hostUsers"));
  spec = Base();
  spec["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}, {"listenerPath", "/run/s"}};
  EXPECT_THAT(refusal(spec), HasSubstr("listenerPath"));
  spec = Base();
  spec["linux"]["intelRdt"] = {{"closID", "x"}};
  EXPECT_THAT(refusal(spec), HasSubstr("intelRdt"));
  spec = Base();
  spec["linux"]["devices"] = {{{"path", "/dev/mine"}, {"type", "c"}, {"major", 10}, {"minor", 200}},
                              {{"path", "/dev/disk"}, {"type", "b"}, {"major", 7}, {"minor", 1}}};
  EXPECT_EQ(refusal(spec), "taken") << "a guest has the one, and is given the other";
  spec["linux"]["devices"] += {{"path", "/dev/card"}, {"type", "c"}, {"major", 226}, {"minor", 0}};
  EXPECT_THAT(refusal(spec), HasSubstr("device '/dev/card': 226:0"));
  spec = Base();
  spec["linux"]["sysctl"] = {{"net.core.somaxconn", "1"}};
  EXPECT_EQ(refusal(spec), "taken") << "the pod's, of its first container";
  EXPECT_THAT(refusal(spec, true), HasSubstr("net.core.somaxconn"));
}

TEST(GuestSpec, TellsLimitsAndWhatAnUpdateChanges) {
  const auto limits = LimitsIn(R"({"cpu": {"quota": 150000, "period": 100000}})");
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits, (Limits{150000, 100000, 0}));
  EXPECT_EQ(*LimitsIn(R"({"memory": {"limit": 5}})", *limits), (Limits{150000, 100000, 5}));
  EXPECT_EQ(*LimitsIn(""), Limits());
}

TEST(GuestSpec, OfAnExecHasNoLabels) {
  EXPECT_EQ(Json::parse(*MakeGuestProcess(R"({"args": ["a"], "apparmorProfile": "p"})")),
            Json({{"args", {"a"}}}));
}

}  // namespace
}  // namespace gantry::vmm
