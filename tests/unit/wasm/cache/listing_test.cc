// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/listing.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <gantry/json.h>
#include <gantry/testing/host_process.h>
#include <gantry/toolkit/files/files.h>

#include "tests/unit/wasm/cache/fakes.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

std::vector<ArtifactStore::Listed> Two() {
  EntryHeader artifact{.id = {.module = Sha256Of("a"), .compiler = {}},
                       .kind = Kind::kProxy,
                       .made_at = 1000,
                       .length = 7};
  EntryHeader failure{.id = {.module = Sha256Of("b"), .compiler = {}},
                      .failure = Code::kResourceExhausted,
                      .made_at = 2000,
                      .kept_until = 2600,
                      .length = 7};
  return {{artifact.id.Key(), artifact, 151, 1000}, {failure.id.Key(), failure, 151, 2000}};
}

TEST(CacheListing, HasThoseUsedLastFirst) {
  const std::string text = ListingText(Two(), 90'000);
  EXPECT_THAT(text, HasSubstr("MODULE            IS"));
  EXPECT_THAT(text,
              HasSubstr("ca978112ca1bbdca  proxy                        151     24h     24h"));
  EXPECT_LT(text.find("RESOURCE_EXHAUSTED"), text.find("proxy"));
}

TEST(CacheListing, IsJson) {
  const auto list = ReadJson(ListingJson(Two()));
  ASSERT_TRUE(list.is_array() && list.size() == 2U);
  EXPECT_EQ(list[0]["error"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(list[0]["kept_until"], 2600);
  EXPECT_EQ(list[1]["module"], "sha256:" + HexOf(Sha256Of("a")));
  EXPECT_EQ(list[1]["kind"], "proxy");
  EXPECT_FALSE(list[1].contains("kept_until"));
  EXPECT_EQ(ListingJson({}), "[]\n");
}

/// The program, as gantryctl runs it.
TEST_F(CacheTest, IsShownByTheTool) {
  ASSERT_EQ(Content("module"), MadeOf("module"));
  Restart();
  const auto run = [&](const std::string& words) {
    const auto process =
        RunShell(Format("{} {} > {}/out 2>&1", GANTRY_CTL_WASM, words, dir_.path()));
    return (*process)->Wait(std::chrono::minutes(1))->code();
  };
  const auto said = [&] { return *ReadFile(dir_.path() + "/out", 1 << 16); };
  EXPECT_EQ(run("cache --directory " + options_.directory), 0U);
  EXPECT_THAT(said(), HasSubstr(HexOf(Sha256Of("module")).substr(0, 16) + "  module"));
  EXPECT_EQ(run("cache --json --directory " + dir_.path() + "/absent"), 0U);
  EXPECT_EQ(said(), "[]\n");
  EXPECT_EQ(run("cache --directory " + dir_.path() + "/out"), 1U);
  EXPECT_EQ(run("cash"), 2U);
  EXPECT_THAT(said(), HasSubstr("usage: gantryctl wasm cache"));
}

}  // namespace
}  // namespace gantry::wasm
