// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "plugins/wasm/fetch/digest.h"
#include "tests/unit/wasm/fetch/fake_store.h"

namespace gantry::wasm::fetch {
namespace {

using ::testing::HasSubstr;

std::string DescriptorText(const std::string& digest, const std::string& size) {
  return Format(R"({{"mediaType":"application/wasm","digest":{},"size":{}}})", digest, size);
}

std::string ManifestWith(const std::string& layer) {
  return Format(R"({{"config":{},"layers":[{}]}})",
                DescriptorText("\"" + DigestOf("c") + "\"", "1"), layer);
}

TEST(WasmDigest, IsReadAndWritten) {
  const std::string text = DigestOf("abc");
  EXPECT_EQ(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const auto digest = ParseDigest(text);
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_EQ(*digest, Sha256Of("abc"));
}

TEST(WasmDigest, OfAnotherFormIsRefused) {
  const std::string good = DigestOf("abc");
  for (const std::string& bad :
       {std::string(), std::string("abc"), std::string("sha256:"), good + "0",
        good.substr(0, good.size() - 1), "sha256:" + std::string(64, 'A'),
        "sha256:../../" + std::string(58, '0')}) {
    const auto digest = ParseDigest(bad);
    ASSERT_FALSE(digest) << bad;
    EXPECT_EQ(digest.error().code, Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(ParseDigest("sha512:" + std::string(128, '0')).error().code, Code::kFailedPrecondition);
}

TEST(WasmManifest, SaysWhereAnErrorIs) {
  const std::string digest = "\"" + DigestOf("x") + "\"";
  for (const auto& [layer, place] : {
           std::pair<std::string, std::string>{DescriptorText("\"sha256:0\"", "1"), "/layers/0"},
           {DescriptorText(digest, "-1"), "/layers/0/size"},
           {DescriptorText(digest, "\"1\""), "/layers/0/size"},
           {DescriptorText("5", "1"), "/layers/0/digest"},
           {R"({"digest":)" + digest + "}", "/layers/0"},
           {"7", "/layers/0"},
       }) {
    const auto manifest = ParseManifest(ManifestWith(layer), "manifest m");
    ASSERT_FALSE(manifest) << layer;
    EXPECT_EQ(manifest.error().code, Code::kInvalidArgument) << layer;
    EXPECT_THAT(manifest.error().message, HasSubstr("manifest m")) << layer;
    EXPECT_THAT(manifest.error().message, HasSubstr(place)) << layer;
  }
}

TEST(WasmManifest, ThatIsNoObjectIsRefused) {
  for (const char* text : {"", "[]", "7", "null", "{", "{\"config\":7}", "{}"}) {
    EXPECT_FALSE(ParseManifest(text, "m")) << text;
  }
  EXPECT_FALSE(ParseConfig("[]", "c"));
  EXPECT_FALSE(ParseConfig(R"({"os":5})", "c"));
  EXPECT_FALSE(ParseIndex("[]", "i"));
}

TEST(WasmManifest, HasOnlySoManyLayers) {
  FakeStore store;
  const Layer layer = store.AddLayer(kWasmType, CoreModule());
  const auto parse = [&](size_t count) {
    const Blob blob = store.AddManifest("wasip1", "wasm", std::vector<Layer>(count, layer));
    return ParseManifest(store.blobs[blob.digest], "m");
  };
  EXPECT_TRUE(parse(kMaxLayers));
  const auto more = parse(kMaxLayers + 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(more.error().message, HasSubstr("501"));
}

TEST(WasmIndex, IsSearchedForWasmThenForTheHost) {
  const Blob blob{std::string(kManifestType), DigestOf("m"), 1};
  const auto of = [&](const char* os, const char* architecture) {
    return IndexEntry{blob, Platform{os, architecture}};
  };
  const std::vector<IndexEntry> entries = {of("linux", "amd64"),     of("linux", "arm64"),
                                           of("unknown", "unknown"), of("wasip1", "wasm"),
                                           IndexEntry{blob, {}},     of("wasi", "wasm")};
  std::vector<std::string> order;
  for (const IndexEntry& entry : InOrderOfChoice(entries, "amd64")) {
    order.push_back(entry.platform ? entry.platform->os : "none");
  }
  EXPECT_THAT(order, ::testing::ElementsAre("wasip1", "wasi", "linux", "none"));
}

}  // namespace
}  // namespace gantry::wasm::fetch
