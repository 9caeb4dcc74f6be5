// SPDX-License-Identifier: Apache-2.0
//
// The option `engine: wasmedge`: who makes the container then, of what, and what is refused.
#include <algorithm>

#include <gmock/gmock.h>

#include <gantry/toolkit/files/files.h>

#include "tests/unit/wasm/backend/fixture.h"
#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

class WasmEdgeTest : public WasmBackendTest {
 protected:
  static constexpr const char* kOption = R"({"engine": "wasmedge"})";

  void SetUp() override {
    WasmBackendTest::SetUp();
    root_.Write("app.wasm", SmallModule());
    root_.Write("component.wasm", ComponentHeader());
    wasmedge_ = root_.bundle() + "/gantry-wasm";
    MakeBackendWith(kOption);
  }

  NodeNeed Need() {
    const std::vector<NodeNeed> needs = backend_->Describe().needs;
    const auto found = std::ranges::find_if(
        needs, [](const NodeNeed& need) { return need.what.starts_with("WasmEdge"); });
    return found == needs.end() ? NodeNeed() : *found;
  }
};

TEST_F(WasmEdgeTest, GetsTheModuleItself) {
  const auto made = Create(R"(["/app.wasm#run"])",
                           R"(, "annotations": {"io.gantry.wasm/memory": "1Mi",
                                  "io.gantry.wasm/network": "none"})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(artifacts_->asked, 0) << "nothing is compiled";
  EXPECT_THAT(Words(), AllOf(Contains("--kind=module"), Contains("--entry=run"),
                             Contains("--memory=1048576"), Contains("--network=none"),
                             Contains(StartsWith("--artifact="))));
  ASSERT_TRUE((*made)->Start());
  EXPECT_EQ(End(container_.process), 42U);
  EXPECT_TRUE((*made)->Delete());
}

TEST_F(WasmEdgeTest, NeedsNoCompiler) {
  MakeBackendWith(kOption, false);
  const auto made = Create(R"(["/app.wasm"])");
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(WasmEdgeTest, RunsNoComponents) {
  const auto made = Create(R"(["/component.wasm"])");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(made.error().message,
              HasSubstr("'/component.wasm': it is a component, and the engine wasmedge runs"));
  EXPECT_TRUE(context_.spawned.empty()) << "nothing was started";
}

TEST_F(WasmEdgeTest, IsThereWhereItsProgramAnswers) {
  EXPECT_TRUE(backend_->CheckOptions(kOption));
  EXPECT_TRUE(Need().met);
  EXPECT_EQ(Need().detail, "wasmedge stand-in");
}

TEST_F(WasmEdgeTest, WithoutItsLibraryItIsSaidWhatToInstall) {
  constexpr const char* kAsTheLoaderSays =
      "#!/bin/sh\necho 'error while loading shared libraries: libwasmedge.so.0' >&2\nexit 127\n";
  wasmedge_ = root_.bundle() + "/without";
  ASSERT_TRUE(WriteFile(wasmedge_, kAsTheLoaderSays, 0755));
  MakeBackendWith(kOption);
  const auto checked = backend_->CheckOptions(kOption);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(checked.error().message,
              AllOf(StartsWith("check option 'engine', 'wasmedge': 'gantry-wasmedge'"),
                    HasSubstr("install libwasmedge0"), HasSubstr("libwasmedge.so.0")));
  EXPECT_FALSE(Need().met);
  EXPECT_TRUE(Need().optional) << "the other engine does without it";
  EXPECT_TRUE(backend_->CheckOptions(R"({"engine": "wasmtime"})"));
}

TEST_F(WasmEdgeTest, OfABuildWithoutItItIsSaid) {
  wasmedge_.clear();
  MakeBackendWith(kOption);
  EXPECT_THAT(backend_->CheckOptions("").error().message, HasSubstr("libwasmedge-dev"));
  EXPECT_THAT(Need().detail, HasSubstr("libwasmedge-dev"));
}

}  // namespace
}  // namespace gantry::wasm
