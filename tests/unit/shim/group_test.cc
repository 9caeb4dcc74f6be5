// SPDX-License-Identifier: Apache-2.0
#include "core/shim/group.h"

#include <gmock/gmock.h>

namespace gantry::shim {
namespace {

TEST(GroupOf, IsTheSandboxOrTheGroup) {
  EXPECT_EQ(GroupOf(R"({"annotations":{"io.kubernetes.cri.sandbox-id":"s"}})"), "s");
  EXPECT_EQ(GroupOf(R"({"annotations":{"io.containerd.runc.v2.group":"g"}})"), "g");
  EXPECT_EQ(GroupOf(R"({"annotations":{"io.containerd.runc.v2.group":"g",
                       "io.kubernetes.cri.sandbox-id":"s"}})"),
            "g");
}

TEST(GroupOf, OfCriIsTheSandboxWhateverThePodSays) {
  for (const char* type : {"sandbox", "container"}) {
    EXPECT_EQ(GroupOf(std::string(R"({"annotations":{"io.containerd.runc.v2.group":"other",
                       "io.kubernetes.cri.container-type":")") +
                      type + R"(","io.kubernetes.cri.sandbox-id":"own"}})"),
              "own");
  }
  EXPECT_EQ(GroupOf(R"({"annotations":{"io.kubernetes.cri.container-type":"container",
                       "io.containerd.runc.v2.group":"other"}})"),
            "");
}

TEST(GroupOf, PassesWhatIsBeforeTheAnnotations) {
  EXPECT_EQ(GroupOf(R"( { "ociVersion" : "1.1.0", "n": -1.5e3, "t" :true, "z":null,
      "process": {"args": ["sh", "-c", "echo \"}]{\\\""], "env": [], "caps": {"a":[[1],[{}]]}},
      "annotations" : { "x" : "y", "io.kubernetes.cri.sandbox-id" : "s" } } )"),
            "s");
}

TEST(GroupOf, LooksOnlyAtTheTop) {
  EXPECT_EQ(GroupOf(R"({"linux":{"annotations":{"io.kubernetes.cri.sandbox-id":"s"}}})"), "");
  EXPECT_EQ(GroupOf(R"({"a":"annotations","b":{"io.kubernetes.cri.sandbox-id":"s"}})"), "");
}

TEST(GroupOf, OfWhatIsNoJsonIsNone) {
  const std::string good =
      R"({"a":[1,{"b":"c"}],"annotations":{"io.containerd.runc.v2.group":"g"}})";
  for (size_t length = 0; length < good.size() - 4; ++length) {
    EXPECT_EQ(GroupOf(std::string_view(good).substr(0, length)), "") << length;
  }
  for (const char* text : {"", "[]", "null", "{", "{]}", "{\"a\":}", "\\", "{\"a\\", "{{{{"}) {
    EXPECT_EQ(GroupOf(text), "") << text;
  }
}

TEST(GroupOf, IsNotStoppedByDepth) {
  std::string deep = "{\"a\":" + std::string(1000000, '[') + std::string(1000000, ']');
  deep += R"(,"annotations":{"io.containerd.runc.v2.group":"g"}})";
  EXPECT_EQ(GroupOf(deep), "g");
}

}  // namespace
}  // namespace gantry::shim
