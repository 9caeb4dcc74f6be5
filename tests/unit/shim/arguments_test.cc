// SPDX-License-Identifier: Apache-2.0
#include "core/shim/arguments.h"

#include <vector>

#include <gmock/gmock.h>

namespace gantry::shim {
namespace {

Result<Arguments> Parse(std::vector<std::string> all) {
  all.insert(all.begin(), "/usr/bin/containerd-shim-gantry-v1");
  return ParseArguments(all);
}

TEST(ShimArguments, AreAsContainerdGivesThem) {
  const auto got = Parse({"-namespace", "default", "-address", "/run/c.sock", "-publish-binary",
                          "/usr/bin/containerd", "-id", "a1", "-debug", "start"});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->ns, "default");
  EXPECT_EQ(got->address, "/run/c.sock");
  EXPECT_EQ(got->publish_binary, "/usr/bin/containerd");
  EXPECT_EQ(got->id, "a1");
  EXPECT_TRUE(got->debug);
  EXPECT_EQ(got->action, "start");
}

TEST(ShimArguments, TakeEveryGoForm) {
  const auto got = Parse(
      {"--namespace=n", "-id=a=b", "--debug=false", "-bundle", "/b", "-later", "x", "delete"});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->ns, "n");
  EXPECT_EQ(got->id, "a=b");
  EXPECT_FALSE(got->debug);
  EXPECT_EQ(got->bundle, "/b");
  EXPECT_EQ(got->action, "delete");
}

TEST(ShimArguments, NeedNothingForVersionAndInfo) {
  EXPECT_TRUE(Parse({"-v"})->version);
  EXPECT_TRUE(Parse({"-info"})->info);
}

TEST(ShimArguments, AreRefusedWithAReason) {
  EXPECT_FALSE(Parse({}));
  EXPECT_FALSE(Parse({"-id"}));
  EXPECT_FALSE(Parse({"-debug=maybe", "start"}));
  EXPECT_FALSE(Parse({"-id", "a", "start"}));
  EXPECT_FALSE(Parse({"-id", "a", "-namespace", "n", "dance"}));
  EXPECT_FALSE(Parse({"-id", "../a", "-namespace", "n", "start"}));
  EXPECT_FALSE(Parse({"-id", "a", "-namespace", "n/m", "start"}));
  EXPECT_FALSE(Parse({"-id", std::string(10000, 'a'), "-namespace", "n", "start"}));
}

TEST(HandlerOf, IsInTheNameOfTheProgram) {
  EXPECT_EQ(HandlerOf("/usr/bin/containerd-shim-gantry-v1"), "");
  EXPECT_EQ(HandlerOf("/usr/bin/containerd-shim-gantry-wasm-v1"), "wasm");
  EXPECT_EQ(HandlerOf("containerd-shim-gantry-my-vm-v2"), "my-vm");
  EXPECT_EQ(HandlerOf("/x/shim"), "");
  EXPECT_EQ(HandlerOf(""), "");
}

}  // namespace
}  // namespace gantry::shim
