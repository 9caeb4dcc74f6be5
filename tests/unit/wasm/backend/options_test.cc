// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/wasm/quantity.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

TEST(WasmOptions, HasDefaults) {
  const auto options = ParseOptions("", Options(), nullptr);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->engine, "wasmtime");
  EXPECT_EQ(options->cache_dir, "/var/lib/gantry/wasm");
  EXPECT_EQ(options->max_module_bytes, 64U << 20);
  EXPECT_EQ(options->memory, 0U);
  EXPECT_TRUE(options->network);
}

TEST(WasmOptions, TakesAll) {
  const auto options = ParseOptions(
      R"({"engine": "wasmedge", "cache_dir": "/c", "containerd_address": "/run/k3s/c.sock", "max_module_bytes": 1000, "memory": "64Mi",
          "network": "none", "compile": {"seconds": 7, "memory": "1Gi"}})",
      Options(), nullptr);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->engine, "wasmedge");
  EXPECT_EQ(options->cache_dir, "/c");
  EXPECT_EQ(options->containerd_address, "/run/k3s/c.sock");
  EXPECT_EQ(options->max_module_bytes, 1000U);
  EXPECT_EQ(options->memory, 64U << 20);
  EXPECT_FALSE(options->network);
  EXPECT_EQ(options->compile_limit, std::chrono::seconds(7));
  EXPECT_EQ(options->compile_memory, 1U << 30);
}

TEST(WasmOptions, NamesTheKeyThatIsWrong) {
  struct Wrong {
    const char* json;
    const char* key;
    const char* why;
  };

  for (const Wrong& one : {
           Wrong{R"({"engine": "v8"})", "'engine'", "wasmtime or wasmedge, is 'v8'"},
           Wrong{R"({"engine": 1})", "'engine'", "number"},
           Wrong{R"({"cache_dir": "c"})", "'cache_dir'", "absolute"},
           Wrong{R"({"max_module_bytes": 0})", "'max_module_bytes'", "'0' is no number of bytes"},
           Wrong{R"({"max_module_bytes": -5})", "'max_module_bytes'", "number of bytes"},
           Wrong{R"({"max_module_bytes": 1.5})", "'max_module_bytes'", "number of bytes"},
           Wrong{R"({"memory": "64MiB"})", "'memory'", "'64MiB' is no number of bytes"},
           Wrong{R"({"memory": []})", "'memory'", "number of bytes"},
           Wrong{R"({"network": "host"})", "'network'", "pod or none, is 'host'"},
           Wrong{R"({"compile": 5})", "'compile'", "table"},
           Wrong{R"({"compile": {"seconds": 0}})", "'compile.seconds'", ""},
           Wrong{R"({"compile": {"minutes": 1}})", "'compile.minutes'", "no such key"},
           Wrong{R"({"memroy": 1})", "'memroy'", "the wasm backend has no such key"},
       }) {
    const auto options = ParseOptions(one.json, Options(), nullptr);
    ASSERT_FALSE(options) << one.json;
    EXPECT_EQ(options.error().code, Code::kInvalidArgument);
    EXPECT_THAT(options.error().message, HasSubstr(one.key));
    EXPECT_THAT(options.error().message, HasSubstr(one.why));
  }
}

TEST(WasmOptions, OfARequestMayBeOfAnotherVersion) {
  std::vector<std::string> unknown;
  ASSERT_TRUE(ParseOptions(R"({"new": 1})", Options(), &unknown));
  EXPECT_THAT(unknown, testing::ElementsAre("new"));
}

TEST(WasmQuantity, IsReadAsKubernetesWritesIt) {
  EXPECT_EQ(ParseQuantity("1").value(), 1U);
  EXPECT_EQ(ParseQuantity("67108864").value(), 64U << 20);
  EXPECT_EQ(ParseQuantity("64Mi").value(), 64U << 20);
  EXPECT_EQ(ParseQuantity("3Ki").value(), 3072U);
  EXPECT_EQ(ParseQuantity("2k").value(), 2000U);
  EXPECT_EQ(ParseQuantity("5G").value(), 5'000'000'000U);
  EXPECT_EQ(ParseQuantity("8388607Ti").value(), 8388607ULL << 40);
  for (const char* text : {"", "0", "-1", "Mi", "64 Mi", "64mi", "1.5Gi", "0x10", "8388608Ti",
                           "9223372036854775808", "+1", "1e3", "64Mi\n"}) {
    EXPECT_EQ(ParseQuantity(text).error().code, Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace gantry::wasm
