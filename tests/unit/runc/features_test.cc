// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/features.h"

#include <filesystem>

#include <gmock/gmock.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/runc/backend.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

using testing::HasSubstr;

class FeaturesTest : public testing::Test {
 protected:
  FeaturesTest() { MakeDir(dir_ / "keep"); }

  /// An OCI runtime that notes each time that it is asked.
  std::string Runtime(const std::string& name, const std::string& body) {
    const std::string path = dir_ / name;
    // Another file, not the same one with another text: what runs is not written to.
    Write(path + ".new", "#!/bin/sh\necho \"$@\" >> " + dir_ / "asked\n" + body, 0755);
    std::filesystem::rename(path + ".new", path);
    return path;
  }

  std::string Asked() const { return Slurp(dir_ / "asked"); }

  TempDir dir_;
};

TEST_F(FeaturesTest, AreAskedOnceAndKept) {
  const std::string oci = Runtime("oci", "echo '{\"mountOptions\": [\"rro\"]}'\n");
  for (int i = 0; i < 3; ++i) {
    const auto features = FeaturesOf(oci, dir_ / "keep");
    ASSERT_TRUE(features) << features.error().message;
    EXPECT_THAT(*features, HasSubstr("rro"));
  }
  EXPECT_EQ(Asked(), "features\n");
}

TEST_F(FeaturesTest, OfAnotherBinaryAreAskedAnew) {
  const std::string oci = Runtime("oci", "echo '{\"mountOptions\": [\"rro\"]}'\n");
  ASSERT_THAT(FeaturesOf(oci, dir_ / "keep").value_or(""), HasSubstr("rro"));
  Runtime("oci", "echo '{\"mountOptions\": [\"ro\"]}'\n");
  EXPECT_EQ(FeaturesOf(oci, dir_ / "keep").value_or(""), "{\"mountOptions\": [\"ro\"]}\n");
  EXPECT_EQ(Asked(), "features\nfeatures\n");
}

TEST_F(FeaturesTest, AreAskedEachTimeWhereNothingCanBeKept) {
  const std::string oci = Runtime("oci", "echo '{}'\n");
  EXPECT_EQ(FeaturesOf(oci, "").value_or(""), "{}\n");
  EXPECT_EQ(FeaturesOf(oci, dir_ / "absent").value_or(""), "{}\n");
  EXPECT_EQ(Asked(), "features\nfeatures\n");
}

TEST_F(FeaturesTest, OfARuntimeWithoutTheCommandAreEmptyAndNotKept) {
  const std::string oci = Runtime("oci", "echo 'No help topic for features'; exit 3\n");
  EXPECT_EQ(FeaturesOf(oci, dir_ / "keep").value_or("error"), "");
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "keep"));
}

TEST_F(FeaturesTest, ThatAreHostileAreEmpty) {
  for (const std::string body : {"yes '{' | head -c 100000\n", "yes | head -c 1000000\n",
                                 "echo '[1]'\n", "printf '{\"a\": \"\\377\"}'\n", "kill $$\n"}) {
    EXPECT_EQ(FeaturesOf(Runtime("oci", body), dir_ / "keep").value_or("error"), "") << body;
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "keep"));
}

TEST_F(FeaturesTest, ThatWereKeptAndDamagedAreAskedAnew) {
  const std::string oci = Runtime("oci", "echo '{}'\n");
  ASSERT_EQ(FeaturesOf(oci, dir_ / "keep").value_or(""), "{}\n");
  const auto names = ListDirectory(dir_ / "keep");
  ASSERT_TRUE(names);
  ASSERT_EQ(names->size(), 1U);
  const std::string path = dir_ / "keep/" + names->front();
  const std::string whole = Slurp(path);
  Write(path, whole.substr(0, whole.size() - 2));
  EXPECT_EQ(FeaturesOf(oci, dir_ / "keep").value_or(""), "{}\n");
  EXPECT_EQ(Asked(), "features\nfeatures\n");
}

TEST_F(FeaturesTest, AreKeptOfSixtyFourBinaries) {
  for (int i = 0; i < 64; ++i) {
    Write(dir_ / Format("keep/{}", i), "");
  }
  const std::string oci = Runtime("oci", "echo '{}'\n");
  EXPECT_EQ(FeaturesOf(oci, dir_ / "keep").value_or(""), "{}\n");
  EXPECT_EQ(ListDirectory(dir_ / "keep").value_or(std::vector<std::string>()).size(), 64U);
}

TEST_F(FeaturesTest, AreThoseOfTheRuntimeThatTheOptionsName) {
  Runtime("one", "echo '{\"mountOptions\": [\"rro\"]}'\n");
  Runtime("other", "echo '{\"mountOptions\": []}'\n");
  auto backend = MakeBackend("{\"BinaryName\": \"" + dir_ / "other" + "\"}");
  ASSERT_TRUE(backend);
  FeaturesRequest request;
  request.options_json = "{\"BinaryName\": \"" + dir_ / "one" + "\", \"ForAnother\": 1}";
  EXPECT_THAT((*backend)->Features(request).value_or(""), HasSubstr("rro"));
  request.options_json = "{}";
  EXPECT_EQ((*backend)->Features(request).value_or(""), "{\"mountOptions\": []}\n");
  request.options_json = R"({"BinaryName": "/absent/oci"})";
  const auto absent = (*backend)->Features(request);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace gantry::runc
