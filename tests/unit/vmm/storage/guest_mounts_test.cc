// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/storage/guest_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gantry::vmm {
namespace {

using nlohmann::json;

constexpr const char* kSpec = R"({
  "ociVersion": "1.2.0", "hostname": "h\u00e4user",
  "root": {"path": "rootfs", "readonly": true},
  "mounts": [
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"]},
    {"destination": "/vol", "type": "bind", "source": "/host", "options": ["rbind", "ro", "idmap"],
     "uidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}],
     "gidMappings": [{"containerID": 0, "hostID": 1000, "size": 1}]},
    {"destination": "/data", "type": "ext4", "source": "/dev/sdb", "options": ["ro", "data=journal"]}
  ],
  "annotations": {"a": "b", "dev.gantry.vmm.device./dev/other": "/run/gantry/volumes/1"},
  "linux": {"resources": {"devices": [
    {"allow": false, "access": "rwm"},
    {"allow": true, "type": "c", "major": 1, "minor": 3, "access": "rwm"},
    {"allow": true, "type": "b", "major": 253, "minor": 3, "access": "rwm"}]}}})";

json Rewritten(const GuestMounts& mounts, const std::string& spec = kSpec) {
  const auto text = WithGuestMounts(spec, mounts);
  EXPECT_TRUE(text) << text.error().message;
  return json::parse(text.value_or("{}"));
}

TEST(GuestMounts, AllElseStaysAsItWas) {
  const json spec = Rewritten({.root = "/run/gantry/shared/1", .binds = {{1, "/g/2"}}});
  EXPECT_EQ(spec["root"], json::parse(R"({"path": "/run/gantry/shared/1", "readonly": true})"));
  EXPECT_EQ(spec["mounts"][0], json::parse(kSpec)["mounts"][0]);
  EXPECT_EQ(spec["mounts"][2], json::parse(kSpec)["mounts"][2]);
  EXPECT_EQ(spec["hostname"], "häuser");
  EXPECT_EQ(spec["annotations"]["a"], "b");
}

// Ids were mapped on the node, and the options of a file system are those of a mount that is there.
TEST(GuestMounts, BindsTakeThePlaceOfWhatTheNodeHas) {
  const json spec = Rewritten({.root = "/r", .binds = {{1, "/g/2"}, {2, "/g/3"}}});
  EXPECT_EQ(spec["mounts"][1], json::parse(R"({"destination": "/vol", "type": "bind",
                                               "source": "/g/2", "options": ["rbind", "ro"]})"));
  EXPECT_EQ(spec["mounts"][2], json::parse(R"({"destination": "/data", "type": "bind",
                                               "source": "/g/3", "options": ["ro", "bind"]})"));
}

// The number of a disk of the node's is that of another container's disk in the guest; and who
// writes annotations must not name one.
TEST(GuestMounts, NumbersOfTheNodesDisksMeanNothingInAGuest) {
  const json spec =
      Rewritten({.root = "/r", .binds = {}, .disks = {{"/dev/xvda", "/run/gantry/volumes/9"}}});
  EXPECT_EQ(spec["linux"]["resources"]["devices"].size(), 2U);
  EXPECT_EQ(spec["linux"]["resources"]["devices"][1]["type"], "c");
  EXPECT_EQ(spec["annotations"]["dev.gantry.vmm.device./dev/xvda"], "/run/gantry/volumes/9");
  EXPECT_FALSE(spec["annotations"].contains("dev.gantry.vmm.device./dev/other"));
}

TEST(GuestMounts, TakesASpecWithoutAnythingAndRefusesWhatIsNone) {
  EXPECT_EQ(Rewritten({.root = "/r"}, R"({"root": {"path": "x"}})")["root"]["path"], "/r");
  for (const char* text : {"{", "[]", "{}", R"({"root": 1})"}) {
    EXPECT_EQ(WithGuestMounts(text, {.root = "/r"}).error().code, Code::kInvalidArgument) << text;
  }
  EXPECT_EQ(WithGuestMounts(kSpec, {.root = "/r", .binds = {{9, "/g"}}}).error().code,
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::vmm
