// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {
namespace {

using ::testing::HasSubstr;

const Platform kWasm{"wasip1", "wasm"};
const Platform kLinux{"linux", "amd64"};

class WasmLayers : public ::testing::Test {
 protected:
  Result<std::optional<Layer>> Choose(const std::vector<Layer>& layers, const Platform& platform,
                                      std::string_view program = "/app.wasm") {
    return ChooseLayer(layers, platform, program, [this](const Blob& blob, size_t most) {
      ++heads_;
      return Result<std::string>(store_.blobs[blob.digest].substr(0, most));
    });
  }

  FakeStore store_;
  int heads_ = 0;
};

TEST_F(WasmLayers, OfTheThreeTypesInUseAreModules) {
  for (const char* type :
       {"application/wasm", "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
        "application/vnd.wasm.content.layer.v1+wasm"}) {
    const Layer layer = store_.AddLayer(type, CoreModule());
    const auto chosen = Choose({layer}, kWasm);
    ASSERT_TRUE(chosen) << chosen.error().message;
    ASSERT_TRUE(*chosen) << type;
    EXPECT_EQ((*chosen)->blob.digest, layer.blob.digest);
  }
  EXPECT_EQ(heads_, 0) << "the only one is the program, whatever it is";
}

TEST_F(WasmLayers, OfFilesAreNoModules) {
  for (const char* type :
       {"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.oci.image.layer.v1.tar+zstd",
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}) {
    const auto chosen = Choose({store_.AddLayer(type, "files")}, kWasm);
    ASSERT_TRUE(chosen) << chosen.error().message;
    EXPECT_FALSE(*chosen) << type;
  }
  EXPECT_EQ(LayerKindOf("application/vnd.oci.image.layer.v1.tarred"), LayerKind::kUnknown);
}

TEST_F(WasmLayers, OfAnUnknownTypeAreNamedNotLeftOut) {
  const Layer odd = store_.AddLayer("application/vnd.other.module.v2", CoreModule());
  const Layer good = store_.AddLayer(kWasmType, CoreModule("1"));
  for (const auto& layers : {std::vector{odd}, std::vector{good, odd}}) {
    const auto chosen = Choose(layers, kWasm);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(chosen.error().message, HasSubstr("'application/vnd.other.module.v2'"));
    EXPECT_THAT(chosen.error().message, HasSubstr(odd.blob.digest));
    EXPECT_THAT(chosen.error().message, HasSubstr("application/wasm"));
  }
  EXPECT_FALSE(Choose({good, odd}, kLinux)) << "an image with a module is one for wasm";
}

TEST_F(WasmLayers, OfAnImageForTheHostAreNotLookedAt) {
  const auto chosen = Choose({store_.AddLayer("application/vnd.other.module.v2", "x")}, kLinux);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_FALSE(*chosen);
}

TEST_F(WasmLayers, BesideFilesAreTheProgram) {
  const Layer module = store_.AddLayer(kWasmType, CoreModule());
  const auto chosen = Choose({store_.AddLayer(kTarType, "files"), module}, kWasm);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_TRUE(*chosen);
  EXPECT_EQ((*chosen)->blob.digest, module.blob.digest);
}

TEST_F(WasmLayers, OfSeveralTheOneWithTheProgramsNameIsIt) {
  const std::vector<Layer> layers = {store_.AddLayer(kWasmType, Component("1"), "other.wasm"),
                                     store_.AddLayer(kWasmType, CoreModule("2"), "app.wasm")};
  for (const char* program : {"app.wasm", "/app.wasm", "./app.wasm"}) {
    const auto chosen = Choose(layers, kWasm, program);
    ASSERT_TRUE(chosen) << chosen.error().message;
    ASSERT_TRUE(*chosen);
    EXPECT_EQ((*chosen)->title, "app.wasm") << program;
  }
  EXPECT_EQ(heads_, 0);
}

TEST_F(WasmLayers, OfSeveralTheOnlyComponentIsIt) {
  const Layer component = store_.AddLayer(kWasmType, Component());
  const auto chosen = Choose({store_.AddLayer(kWasmType, CoreModule("1"), "a"), component,
                              store_.AddLayer(kWasmType, CoreModule("2"), "b")},
                             kWasm);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_TRUE(*chosen);
  EXPECT_EQ((*chosen)->blob.digest, component.blob.digest);
}

TEST_F(WasmLayers, OfWhichNoneIsTheOneAreListed) {
  const Layer a = store_.AddLayer(kWasmType, Component("1"), "a.wasm");
  const Layer b = store_.AddLayer(kWasmType, Component("2"), "b.wasm");
  const auto chosen = Choose({a, b}, kWasm, "/c.wasm");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, Code::kFailedPrecondition);
  for (const Layer& layer : {a, b}) {
    EXPECT_THAT(chosen.error().message, HasSubstr(layer.blob.digest + " '" + layer.title + "'"));
  }
  EXPECT_THAT(chosen.error().message, HasSubstr("'/c.wasm'"));
}

}  // namespace
}  // namespace gantry::wasm::fetch
