// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/module_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/descriptors/memfd.h>

#include "plugins/wasm/fetch/digest.h"
#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class WasmModuleOf : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = CreateMemfd("module");
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::move(*file);
  }

  Result<ImageAnswer> Fetch(uint64_t max_bytes = 1000) {
    return FetchModule(store_, {"c1", "/app.wasm", max_bytes, "amd64"}, file_.get());
  }

  std::string Written() { return ReadAt(file_.get(), 0, 4096).value_or("?"); }

  /// What the manifest of an image with that one module is.
  Blob ManifestOf(const std::string& module, const std::string& os = "wasip1") {
    return store_.AddManifest(os, "wasm", {store_.AddLayer(kWasmType, module)});
  }

  void ExpectError(Code code, const std::string& words) {
    const auto answer = Fetch();
    ASSERT_FALSE(answer) << words;
    EXPECT_EQ(answer.error().code, code) << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr(words));
  }

  FakeStore store_;
  UniqueFd file_;
};

TEST_F(WasmModuleOf, AnImageThatIsNamedIsWritten) {
  const std::string module = CoreModule("the rest");
  store_.Use(ManifestOf(module));
  const auto answer = FetchModule(store_, {"", "/app.wasm", 1000, "amd64", "image"}, file_.get());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(Written(), module);
}

TEST_F(WasmModuleOf, AnImageIsWritten) {
  const std::string module = CoreModule("the rest");
  store_.Use(ManifestOf(module));
  const auto answer = Fetch();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->platform, (Platform{"wasip1", "wasm"}));
  ASSERT_TRUE(answer->module);
  EXPECT_EQ(answer->module->digest, DigestOf(module));
  EXPECT_EQ(answer->module->size, module.size());
  EXPECT_EQ(answer->layers.size(), 1U);
  EXPECT_EQ(Written(), module);
}

TEST_F(WasmModuleOf, AnArtifactIsWritten) {
  const std::string module = Component();
  store_.Use(store_.AddManifest("wasip2", "wasm", {store_.AddLayer(kWasmType, module)},
                                "application/vnd.wasm.config.v0+json"));
  const auto answer = Fetch();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->platform.os, "wasip2");
  EXPECT_EQ(Written(), module);
}

TEST_F(WasmModuleOf, AnImageOfFilesIsNotThere) {
  store_.Use(store_.AddManifest("wasi", "wasm", {store_.AddLayer(kTarType, "files")}));
  const auto answer = Fetch();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->platform, (Platform{"wasi", "wasm"}));
  EXPECT_FALSE(answer->module);
  EXPECT_EQ(Written(), "");
  EXPECT_THAT(store_.reads, Not(Contains(DigestOf("files"))));
}

TEST_F(WasmModuleOf, AnIndexIsOfTheManifestForWasm) {
  const std::string module = CoreModule("for wasm");
  const Blob host =
      store_.AddManifest("linux", "amd64", {store_.AddLayer(kTarType, "files of the host")});
  store_.Use(store_.AddIndex(
      {{host, Platform{"linux", "amd64"}}, {ManifestOf(module), Platform{"wasip1", "wasm"}}}));
  ASSERT_TRUE(Fetch());
  EXPECT_EQ(Written(), module);
  EXPECT_THAT(store_.reads, Not(Contains(host.digest)));
}

TEST_F(WasmModuleOf, AnIndexIsOfAManifestThatWasPulled) {
  const Blob absent = ManifestOf(CoreModule("not pulled"));
  store_.blobs.erase(absent.digest);
  const std::string module = CoreModule("pulled");
  store_.Use(store_.AddIndex(
      {{absent, Platform{"wasip2", "wasm"}}, {ManifestOf(module), Platform{"wasip1", "wasm"}}}));
  const auto answer = Fetch();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(Written(), module);
}

TEST_F(WasmModuleOf, AnIndexWithoutAManifestHereSaysWhatToPull) {
  const Blob absent = ManifestOf(CoreModule());
  store_.blobs.erase(absent.digest);
  store_.Use(store_.AddIndex({{absent, Platform{"wasip1", "wasm"}}}));
  ExpectError(Code::kFailedPrecondition, "pull the image");
}

TEST_F(WasmModuleOf, AnIndexInAnIndexIsFoundToALimit) {
  Blob target = ManifestOf(CoreModule());
  for (int level = 0; level < 4; ++level) {
    target = store_.AddIndex({{target, Platform{"wasip1", "wasm"}}});
  }
  store_.Use(target);
  EXPECT_TRUE(Fetch());
  store_.Use(store_.AddIndex({{target, Platform{"wasip1", "wasm"}}}));
  ExpectError(Code::kFailedPrecondition, "one in the other");
}

TEST_F(WasmModuleOf, ABlobThatIsNotItsDigestIsRefused) {
  const Layer layer = store_.AddLayer(kWasmType, CoreModule("good"));
  const Blob manifest = store_.AddManifest("wasip1", "wasm", {layer});
  store_.Use(manifest);
  store_.blobs[layer.blob.digest] = CoreModule("evil");
  ExpectError(Code::kDataLoss, DigestOf(CoreModule("evil")));
  std::string& text = store_.blobs[manifest.digest];
  text[text.find("wasm")] = 'W';
  ExpectError(Code::kDataLoss, manifest.digest);
}

TEST_F(WasmModuleOf, ABlobOfAnotherSizeIsRefused) {
  const Layer layer = store_.AddLayer(kWasmType, CoreModule("good"));
  store_.Use(store_.AddManifest("wasip1", "wasm", {layer}));
  store_.blobs[layer.blob.digest] += "more";
  ExpectError(Code::kDataLoss, "longer than the 12 bytes");
  store_.blobs[layer.blob.digest] = CoreModule();
  ExpectError(Code::kDataLoss, "8 bytes, its descriptor says 12");
}

TEST_F(WasmModuleOf, AModuleAboveTheLimitIsNotRead) {
  const std::string module = CoreModule("much");
  store_.Use(ManifestOf(module));
  const auto answer = Fetch(module.size() - 1);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kResourceExhausted);
  EXPECT_THAT(answer.error().message, HasSubstr("12 bytes, 11 are allowed"));
  EXPECT_THAT(store_.reads, Not(Contains(DigestOf(module))));
  EXPECT_TRUE(Fetch(module.size()));
}

TEST_F(WasmModuleOf, ADocumentAboveTheLimitIsNotRead) {
  Blob manifest = ManifestOf(CoreModule());
  manifest.size = kMaxDocumentBytes + 1;
  store_.Use(manifest);
  ExpectError(Code::kResourceExhausted, "4194304 are taken");
  EXPECT_TRUE(store_.reads.empty());
}

TEST_F(WasmModuleOf, WhatIsNotThereIsNamed) {
  ExpectError(Code::kNotFound, "container 'c1'");
  store_.containers["c1"] = "image";
  ExpectError(Code::kNotFound, "image 'image'");
  store_.containers["c1"] = "";
  ExpectError(Code::kFailedPrecondition, "it has none");
  const Blob manifest = ManifestOf(CoreModule("gone"));
  store_.Use(manifest);
  store_.blobs.erase(DigestOf(CoreModule("gone")));
  ExpectError(Code::kNotFound, DigestOf(CoreModule("gone")));
}

TEST_F(WasmModuleOf, WhatIsNoImageIsNamed) {
  store_.Use(store_.Add("application/vnd.other.thing", "{}"));
  ExpectError(Code::kFailedPrecondition, "'application/vnd.other.thing'");
  store_.Use(store_.AddManifest("wasip1", "wasm", {store_.AddLayer(kWasmType, CoreModule())},
                                "application/vnd.other.config"));
  ExpectError(Code::kFailedPrecondition, "'application/vnd.other.config'");
  store_.Use(Blob{std::string(kManifestType), "sha256:short", 1});
  ExpectError(Code::kInvalidArgument, "sha256:short");
}

TEST_F(WasmModuleOf, AFileThatCannotBeWrittenIsAnError) {
  store_.Use(ManifestOf(CoreModule()));
  ASSERT_TRUE(ReopenForReading(file_));
  file_ = std::move(*ReopenForReading(file_));
  ExpectError(Code::kInternal, "write the module: EBADF");
}

}  // namespace
}  // namespace gantry::wasm::fetch
