// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <gantry/json.h>

#include "tests/unit/wasm/backend/fixture.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

class WasmBackendItselfTest : public WasmBackendTest {};

TEST_F(WasmBackendItselfTest, SaysWhatItNeeds) {
  const BackendInfo info = backend_->Describe();
  EXPECT_EQ(info.name, "wasm");
  EXPECT_TRUE(info.pauseless_pods);
  const auto engine = std::ranges::find_if(
      info.needs, [](const NodeNeed& need) { return need.what.contains("engine"); });
  ASSERT_NE(engine, info.needs.end());
  EXPECT_FALSE(engine->met) << "the test carries no compiler";
  EXPECT_THAT(engine->detail, HasSubstr("built without"));
}

TEST_F(WasmBackendItselfTest, PromisesWhatItMakes) {
  const auto features = backend_->Features({});
  ASSERT_TRUE(features);
  const auto document = ReadJson(*features);
  ASSERT_TRUE(document.is_object()) << *features;
  EXPECT_TRUE(document["linux"]["mountExtensions"]["idmap"]["enabled"].get<bool>());
}

TEST_F(WasmBackendItselfTest, CountsWhatItsArtifactsCount) {
  const auto counts = backend_->Counts();
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts.front().name, "compiles");
  backend_->Leave();
  EXPECT_TRUE(artifacts_->left);
}

TEST_F(WasmBackendItselfTest, ChecksOptions) {
  EXPECT_TRUE(backend_->CheckOptions(R"({"of_a_newer_containerd": 1})")) << "it is attached";
  EXPECT_EQ(backend_->CheckOptions(R"({"engine": "v8"})").error().code, Code::kInvalidArgument);
  const auto other = backend_->CheckOptions(R"({"engine": "wasmedge"})");
  EXPECT_EQ(other.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(other.error().message, HasSubstr("'engine', 'wasmedge': this gantry was built"));
  const auto fresh = MakeBackend("", {}).value();
  EXPECT_THAT(fresh->CheckOptions(R"({"memroy": 1})").error().message, HasSubstr("'memroy'"));
  EXPECT_TRUE(fresh->Counts().empty());
  fresh->Leave();
  EXPECT_EQ(MakeBackend(R"({"network": 1})", {}).error().code, Code::kInvalidArgument);
}

TEST_F(WasmBackendItselfTest, ShowsItsEngine) {
  SandboxRequest request;
  request.options_json = R"({"engine": "wasmedge", "other": 1})";
  FakeSandboxContext context;
  const auto sandbox = backend_->CreateSandbox(request, context);
  ASSERT_TRUE(sandbox) << sandbox.error().message;
  EXPECT_EQ((*sandbox)->Info().value().at("engine"), "wasmedge");
  EXPECT_TRUE(context.WaitForLog("runtime option 'other'"));
  request.options_json = R"({"engine": "v8"})";
  EXPECT_EQ(backend_->CreateSandbox(request, context).error().code, Code::kInvalidArgument);
}

TEST_F(WasmBackendItselfTest, APodWithoutAPauseContainerIsCheckedFirst) {
  SandboxRequest request;
  request.id = *SandboxId::Parse("p1");
  request.kind = SandboxKind::kPauseless;
  FakeSandboxContext context;
  const auto sandbox = backend_->CreateSandbox(request, context);
  ASSERT_FALSE(sandbox) << "it has no network namespace";
  EXPECT_EQ(sandbox.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::wasm
