// SPDX-License-Identifier: Apache-2.0
#include "core/shim/bootstrap.h"

#include <gmock/gmock.h>

#include <gantry/protowire.h>

namespace gantry::shim {
namespace {

std::string Any(const std::string& type, const std::string& value) {
  ProtoWriter any;
  any.Text(1, type);
  any.Text(2, value);
  return any.Take();
}

std::string Params(const std::string& id, const std::string& ns, const std::string& type) {
  ProtoWriter extension;
  extension.Bytes(1, Any(type, "value"));
  ProtoWriter params;
  params.Text(1, id);
  params.Text(2, ns);
  params.Int(3, -4);
  params.Text(4, "2.3.4");
  params.Text(5, "/t.sock");
  params.Text(6, "/g.sock");
  params.Text(7, "/containerd");
  params.Bytes(8, extension.str());
  params.Text(9, "/run/containerd/s");
  return params.Take();
}

TEST(Bootstrap, OfNothingIsNothing) {
  const Bootstrap got = ParseBootstrap("", "a", "n");
  EXPECT_EQ(got.version, 0U);
  EXPECT_EQ(got.options_type_url, "");
}

TEST(Bootstrap, TakesAnAny) {
  const Bootstrap got = ParseBootstrap(Any("runtimeoptions.v1.Options", "bytes"), "a", "n");
  EXPECT_EQ(got.version, 0U);
  EXPECT_EQ(got.options_type_url, "runtimeoptions.v1.Options");
  EXPECT_EQ(got.options, "bytes");
}

TEST(Bootstrap, TakesParamsWithTheSameIds) {
  const Bootstrap got =
      ParseBootstrap(Params("a", "n", "type.googleapis.com/runtimeoptions.v1.Options"), "a", "n");
  EXPECT_EQ(got.version, 3U);
  EXPECT_EQ(got.options_type_url, "type.googleapis.com/runtimeoptions.v1.Options");
  EXPECT_EQ(got.options, "value");
  EXPECT_EQ(got.grpc_address, "/g.sock");
  EXPECT_EQ(got.ttrpc_address, "/t.sock");
  EXPECT_EQ(got.containerd_binary, "/containerd");
  EXPECT_EQ(got.containerd_version, "2.3.4");
  EXPECT_TRUE(got.debug);
}

TEST(Bootstrap, DoesNotBelieveParamsOfAnother) {
  EXPECT_EQ(ParseBootstrap(Params("b", "n", "x"), "a", "n").version, 0U);
  EXPECT_EQ(ParseBootstrap(Params("a", "m", "x"), "a", "n").version, 0U);
}

TEST(Bootstrap, LeavesExtensionsThatAreNoOptions) {
  const Bootstrap got = ParseBootstrap(Params("a", "n", "some.other.Thing"), "a", "n");
  EXPECT_EQ(got.version, 3U);
  EXPECT_EQ(got.options_type_url, "");
}

TEST(Bootstrap, IsNotStoppedByNonsense) {
  EXPECT_EQ(ParseBootstrap("\xff\xff\xff", "a", "n").version, 0U);
  EXPECT_EQ(ParseBootstrap("{\"json\":1}", "a", "n").options_type_url, "");
}

}  // namespace
}  // namespace gantry::shim
