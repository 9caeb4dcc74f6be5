// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

oci::Spec With(const std::string& key, const std::string& value) {
  oci::Spec spec;
  spec.annotations[key] = value;
  return spec;
}

TEST(WasmClaim, IsSaidByAnnotations) {
  for (const char* value : {"wasm", "wasmtime", "wasmedge", "wasmer", "wamr"}) {
    EXPECT_EQ(ClaimOf(With("run.oci.handler", value)).value(), Claim::kWasm) << value;
  }
  EXPECT_EQ(ClaimOf(With("run.oci.handler", "wasm-smart")).value(), Claim::kSmart);
  EXPECT_EQ(ClaimOf(With("module.wasm.image/variant", "compat")).value(), Claim::kWasm);
  EXPECT_EQ(ClaimOf(With("module.wasm.image/variant", "compat-smart")).value(), Claim::kSmart);
  EXPECT_EQ(ClaimOf(oci::Spec()).value(), Claim::kNone);
}

TEST(WasmClaim, TheHandlerIsTheStronger) {
  oci::Spec spec = With("run.oci.handler", "wasm");
  spec.annotations["module.wasm.image/variant"] = "compat-smart";
  EXPECT_EQ(ClaimOf(spec).value(), Claim::kWasm);
}

TEST(WasmClaim, ASandboxIsNone) {
  oci::Spec spec = With("run.oci.handler", "wasm");
  spec.annotations["io.kubernetes.cri.container-type"] = "sandbox";
  EXPECT_EQ(ClaimOf(spec).value(), Claim::kNative);
  spec.annotations["io.kubernetes.cri.container-type"] = "container";
  EXPECT_EQ(ClaimOf(spec).value(), Claim::kWasm);
}

TEST(WasmClaim, RefusesOthers) {
  const auto handler = ClaimOf(With("run.oci.handler", "krun"));
  EXPECT_EQ(handler.error().code, Code::kUnimplemented);
  EXPECT_THAT(handler.error().message, HasSubstr("'run.oci.handler', 'krun'"));
  const auto variant = ClaimOf(With("module.wasm.image/variant", "smart"));
  EXPECT_EQ(variant.error().code, Code::kInvalidArgument);
  EXPECT_THAT(variant.error().message, HasSubstr("'module.wasm.image/variant', 'smart'"));
}

Result<Settings> Of(const std::string& name, const std::string& value) {
  return SettingsOf(With("io.gantry.wasm/" + name, value), {}, {});
}

TEST(WasmSettings, AreTheAnnotations) {
  EXPECT_EQ(Of("memory", "64Mi")->memory, 64U << 20);
  EXPECT_FALSE(Of("network", "none")->network);
  EXPECT_EQ(Of("listen", "127.0.0.1:80")->listen, "127.0.0.1:80");
  EXPECT_EQ(Of("listen", "[::1]:65535")->listen, "[::1]:65535");
  EXPECT_EQ(Of("entry", "run")->entry, "run");
}

TEST(WasmSettings, NameWhatIsWrong) {
  struct Wrong {
    const char* name;
    const char* value;
  };

  for (const Wrong& one :
       {Wrong{"memory", ""}, Wrong{"memory", "0"}, Wrong{"memory", "lots"},
        Wrong{"network", "host"}, Wrong{"network", ""}, Wrong{"listen", "8080"},
        Wrong{"listen", ":8080"}, Wrong{"listen", "0.0.0.0"}, Wrong{"listen", "0.0.0.0:0"},
        Wrong{"listen", "0.0.0.0:65536"}, Wrong{"listen", "0.0.0.0:http"},
        Wrong{"listen", "::1:80"}, Wrong{"listen", "[::1:80"}, Wrong{"listen", "host:80"},
        Wrong{"entry", ""}, Wrong{"memroy", "64Mi"}, Wrong{"", "x"}}) {
    const auto settings = Of(one.name, one.value);
    ASSERT_FALSE(settings) << one.name << " " << one.value;
    EXPECT_EQ(settings.error().code, Code::kInvalidArgument);
    EXPECT_THAT(settings.error().message,
                HasSubstr("annotation 'io.gantry.wasm/" + std::string(one.name) + "', '" +
                          one.value + "': "));
  }
}

TEST(WasmSettings, ALongValueIsCut) {
  const auto settings = Of("memory", std::string(100'000, '9'));
  ASSERT_FALSE(settings);
  EXPECT_LT(settings.error().message.size(), 400U);
}

TEST(WasmSettings, MemoryIsBoundedByTheContainersLimitAndThenByTheHandlers) {
  oci::Spec spec;
  Options options;
  options.memory = 5000;
  EXPECT_EQ(SettingsOf(spec, {}, options)->memory, 5000U);
  spec.resources_json = R"({"memory": {"limit": 1048576}, "cpu": {"shares": 2}})";
  EXPECT_EQ(SettingsOf(spec, {}, options)->memory, 1048576U);
  spec.annotations["io.gantry.wasm/memory"] = "3000";
  EXPECT_EQ(SettingsOf(spec, {}, options)->memory, 3000U);
  spec.annotations.clear();
  spec.resources_json = R"({"memory": {"limit": -1}})";
  EXPECT_EQ(SettingsOf(spec, {}, options)->memory, 5000U);
  EXPECT_EQ(SettingsOf(oci::Spec(), {}, {})->memory, 0U);
}

TEST(WasmSettings, AnAddressMayStandInTheEnvironment) {
  oci::ProcessSpec process;
  process.env = {"A=b", "GANTRY_WASM_LISTEN=0.0.0.0:81"};
  EXPECT_EQ(SettingsOf({}, process, {})->listen, "0.0.0.0:81");
  EXPECT_EQ(SettingsOf(With("io.gantry.wasm/listen", "0.0.0.0:82"), process, {})->listen,
            "0.0.0.0:81")
      << "an annotation may be that of the whole pod";
  process.env = {"GANTRY_WASM_LISTEN=81"};
  const auto wrong = SettingsOf({}, process, {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  EXPECT_THAT(wrong.error().message, HasSubstr("'GANTRY_WASM_LISTEN', '81'"));
}

}  // namespace
}  // namespace gantry::wasm
