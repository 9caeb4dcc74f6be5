// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pause/pause_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gantry::gvisor {
namespace {

using nlohmann::json;

json SpecOf(const PauseSpecRequest& request) { return json::parse(PauseSpec(request)); }

/// By type, with the paths where there are any.
std::map<std::string, std::string> NamespacesIn(const json& spec) {
  std::map<std::string, std::string> all;
  for (const json& one : spec["linux"]["namespaces"]) {
    all[one["type"]] = one.value("path", "");
  }
  return all;
}

using Namespaces = std::map<std::string, std::string>;

TEST(PauseSpec, RunsTheProgramWithoutPrivileges) {
  PauseSpecRequest request;
  request.root = "/run/empty";
  const json spec = SpecOf(request);
  EXPECT_EQ(spec["root"], json({{"path", "/run/empty"}, {"readonly", true}}));
  const json& process = spec["process"];
  EXPECT_EQ(process["args"], json({"/pause"}));
  EXPECT_EQ(process["cwd"], "/");
  EXPECT_EQ(process["terminal"], false);
  EXPECT_EQ(process["noNewPrivileges"], true);
  EXPECT_NE(process["user"]["uid"], 0);
  for (const auto& [set, capabilities] : process["capabilities"].items()) {
    EXPECT_EQ(capabilities, json::array()) << set;
  }
}

TEST(PauseSpec, SaysNothingOfWhatWasNotAskedFor) {
  const json spec = SpecOf(PauseSpecRequest());
  EXPECT_FALSE(spec.contains("hostname"));
  EXPECT_FALSE(spec["linux"].contains("sysctl"));
  EXPECT_EQ(spec["annotations"], json::object());
  EXPECT_EQ(spec["mounts"], json::array());
}

TEST(PauseSpec, NamesThePodsNetwork) {
  const Namespaces own = {{"pid", ""}, {"ipc", ""}, {"uts", ""}, {"mount", ""}};
  PauseSpecRequest request;
  Namespaces expected = own;
  expected["network"] = "";
  EXPECT_EQ(NamespacesIn(SpecOf(request)), expected);
  request.network = "/run/netns/n";
  expected["network"] = "/run/netns/n";
  EXPECT_EQ(NamespacesIn(SpecOf(request)), expected);
  request.network.reset();
  EXPECT_EQ(NamespacesIn(SpecOf(request)), own);
}

TEST(PauseSpec, CarriesWhatThePodHas) {
  PauseSpecRequest request;
  request.hostname = "web-1";
  request.sysctls = {{"fs.nr_open", "1000"}};
  request.annotations = {{"io.kubernetes.cri.container-type", "sandbox"}};
  const json spec = SpecOf(request);
  EXPECT_EQ(spec["hostname"], "web-1");
  EXPECT_EQ(spec["linux"]["sysctl"], json({{"fs.nr_open", "1000"}}));
  EXPECT_EQ(spec["annotations"], json({{"io.kubernetes.cri.container-type", "sandbox"}}));
}

TEST(PauseSpec, IsTextWhateverItIsGiven) {
  PauseSpecRequest request;
  request.root = "/\"\xff";
  request.hostname = "\x80";
  request.annotations = {{"\xc0", "\n"}};
  EXPECT_TRUE(SpecOf(request).is_object());
}

}  // namespace
}  // namespace gantry::gvisor
