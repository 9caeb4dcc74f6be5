// SPDX-License-Identifier: Apache-2.0
//
// The WASI project's own test programs for preview 1, where there are any: the environment
// variable GANTRY_WASI_TESTSUITE names a copy of its repository with the programs (docs/wasi.md).
// Each is run in a container of its own, as the text beside it says.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/wasm/program/guest_fixture.h"
#include "tests/unit/wasm/wasi/artifact.h"

namespace gantry::wasm {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;

/// Paths below the copy.
std::vector<std::string> Programs() {
  std::vector<std::string> programs;
  const char* const suite = std::getenv("GANTRY_WASI_TESTSUITE");  // NOLINT(concurrency-mt-unsafe)
  for (const char* const language : {"assemblyscript", "c", "rust"}) {
    const fs::path folder = fs::path(suite != nullptr ? suite : "") / "tests" / language /
                            "testsuite" / "wasm32-wasip1";
    if (suite == nullptr || !fs::exists(folder)) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".wasm") {
        programs.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(programs);
  return programs;
}

class WasiProject : public GuestTest, public testing::WithParamInterface<std::string> {
 protected:
  static fs::path Path() { return GetParam(); }

  /// What is to be done with the program; an empty object: it has no arguments.
  static Json Wanted() {
    std::ifstream file(Path().replace_extension(".json"));
    return file ? Json::parse(file) : Json::object();
  }

  /// In its root: what the program is to find there.
  GatedRequest RequestFor(const Json& wanted) const {
    if (wanted.contains("root")) {
      fs::copy(Path().parent_path() / wanted["root"].get<std::string>(), bundle_.InRoot(""),
               fs::copy_options::recursive);
    }
    Json spec = Json::parse(container::Bundle::TextOf({}));
    spec["process"]["args"] = {Path().filename().string()};
    for (const Json& word : wanted.value("args", Json::array())) {
      spec["process"]["args"].push_back(word);
    }
    spec["process"]["env"] = Json::array();
    const Json env = wanted.value("env", Json::object());
    for (const auto& [name, value] : env.items()) {
      spec["process"]["env"].push_back(name + "=" + value.get<std::string>());
    }
    GatedRequest request = RequestOf({});
    request.spec_json = spec.dump();
    return request;
  }
};

TEST_P(WasiProject, Passes) {
  const Json wanted = Wanted();
  GuestProcess guest(sandbox_);
  const Status made = guest.Make(RequestFor(wanted), Compiled(GetParam()), {"--kind=module"});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(guest.Open());
  const std::string end = "exit " + std::to_string(wanted.value("exit_code", 0));
  // Of those that do not say what they print, some print what they think of it.
  EXPECT_THAT(guest.Rest(), AllOf(StartsWith(wanted.value("stdout", "")), EndsWith(end)));
}

/// `rust_fd_readdir`.
std::string NameOf(const testing::TestParamInfo<std::string>& info) {
  const fs::path path = info.param;
  std::string name = path.parent_path().parent_path().parent_path().filename().string() + "_" +
                     path.stem().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WasiProject);
INSTANTIATE_TEST_SUITE_P(Preview1, WasiProject, testing::ValuesIn(Programs()), NameOf);

}  // namespace
}  // namespace gantry::wasm
