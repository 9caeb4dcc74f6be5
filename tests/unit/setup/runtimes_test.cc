// SPDX-License-Identifier: Apache-2.0
#include "core/setup/runtimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/setup/config_file.h"

namespace gantry::setup {
namespace {

using testing::HasSubstr;
using testing::Not;

Wanted Of(std::string_view words) {
  return {.runtimes = *ParseRuntimes(words, Sandboxer::kPodsandbox),
          .shim = "",
          .grpc_address = "/run/gantry/grpc.sock"};
}

TEST(Runtimes, AreReadWithNamesAndSandboxers) {
  const auto runtimes =
      ParseRuntimes("runc,runc=pauseless:shim,wasm:controller", Sandboxer::kPodsandbox);
  ASSERT_TRUE(runtimes.has_value()) << runtimes.error().message;
  EXPECT_THAT(*runtimes, testing::ElementsAre(Runtime{"runc", "gantry", Sandboxer::kPodsandbox},
                                              Runtime{"runc", "pauseless", Sandboxer::kShim},
                                              Runtime{"wasm", "wasm", Sandboxer::kController}));
}

TEST(Runtimes, AreRefusedWhereNoRuntimeClassCouldNameThem) {
  for (const char* const words :
       {"", ",", "runc,", "Runc", "a b", "runc=", "=x", "runc=a.b", "runc=-a", "runc:nobody",
        "runc,x=gantry", "x\"]", "runc=x:shim:shim"}) {
    const auto runtimes = ParseRuntimes(words, Sandboxer::kPodsandbox);
    ASSERT_FALSE(runtimes.has_value()) << words;
    EXPECT_EQ(runtimes.error().code, Code::kInvalidArgument);
  }
}

TEST(Runtimes, AreTablesOfTheVersion) {
  const Wanted wanted = Of("runc,gvisor");
  const std::string first = TablesOf(wanted, {1, 7, 24}, 2);
  EXPECT_THAT(first,
              HasSubstr("[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.gantry]\n"
                        "  runtime_type = \"io.containerd.gantry.v1\"\n"));
  EXPECT_THAT(first,
              HasSubstr("runtimes.gvisor]\n  runtime_type = \"io.containerd.gantry-gvisor.v1\"\n"));
  EXPECT_THAT(first, Not(HasSubstr("sandbox")));
  EXPECT_THAT(TablesOf(wanted, {2, 3, 4}, 3),
              HasSubstr("[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.gantry]\n"));
}

TEST(Runtimes, AreTomlThatReadsBack) {
  const Wanted wanted = Of("runc,gvisor,wasm,vmm,runc=direct:controller");
  for (const int version : {2, 3, 4}) {
    const auto parsed = ParseConfig(TablesOf(wanted, {2, 3, 4}, version), "t");
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->runtimes.size(), 5U);
    EXPECT_EQ(parsed->runtimes.at("vmm"), "io.containerd.gantry-vmm.v1");
    EXPECT_THAT(parsed->proxy_plugins, testing::ElementsAre("gantry"));
  }
}

TEST(Runtimes, NameTheirSandboxerAsTheReleaseDoes) {
  Wanted wanted = Of("runc:shim");
  EXPECT_THAT(TablesOf(wanted, {1, 7, 24}, 2), HasSubstr("  sandbox_mode = \"shim\"\n"));
  EXPECT_THAT(TablesOf(wanted, {2, 3, 4}, 2), HasSubstr("  sandboxer = \"shim\"\n"));
  wanted = Of("runc:controller");
  EXPECT_THAT(TablesOf(wanted, {2, 0, 14}, 3),
              testing::AllOf(HasSubstr("[proxy_plugins.gantry]\n  type = \"sandbox\"\n  address = "
                                       "\"/run/gantry/grpc.sock\"\n"),
                             HasSubstr("  sandboxer = \"gantry\"\n")));
}

TEST(Runtimes, NameTheShimByItsPath) {
  Wanted wanted = Of("runc,wasm");
  wanted.shim = "/opt/gantry/bin/containerd-shim-gantry-v1";
  const std::string text = TablesOf(wanted, {2, 3, 4}, 3);
  EXPECT_THAT(text, HasSubstr("runtime_path = \"/opt/gantry/bin/containerd-shim-gantry-v1\"\n"));
  EXPECT_THAT(text,
              HasSubstr("runtime_path = \"/opt/gantry/bin/containerd-shim-gantry-wasm-v1\"\n"));
}

TEST(Runtimes, OfADefaultHandlerNeedNoLink) {
  Wanted wanted = Of("runc,wasm");
  wanted.default_handler = "wasm";
  EXPECT_EQ(TypeOf(wanted, "wasm"), "io.containerd.gantry.v1");
  EXPECT_EQ(TypeOf(wanted, "runc"), "io.containerd.gantry-runc.v1");
  EXPECT_EQ(ShimOf(wanted, "wasm"), "containerd-shim-gantry-v1");
}

TEST(RuntimeClasses, SayWhatAPodCosts) {
  const std::string text = RuntimeClassesOf(Of("runc,vmm=machine"));
  EXPECT_THAT(text, HasSubstr("metadata:\n  name: gantry\nhandler: gantry\n---\n"));
  EXPECT_THAT(text, HasSubstr("handler: machine\noverhead:\n  podFixed:\n    cpu: 250m\n"));
}

}  // namespace
}  // namespace gantry::setup
