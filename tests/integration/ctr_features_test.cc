// SPDX-License-Identifier: Apache-2.0
//
// What `ctr plugins inspect-runtime` says of a handler is what its OCI runtime says: containerd
// decides by it which mounts and which user namespaces a container may ask for.
#include <nlohmann/json.hpp>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;

class CtrFeatures : public E2eTest {
 protected:
  void SetUp() override {
    if (settings().release1()) {
      GTEST_SKIP() << "ctr of containerd 1.7 cannot inspect a runtime";
    }
    if (!settings().runc() && !settings().stock()) {
      GTEST_SKIP() << "this run is of a backend without an OCI runtime's promises";
    }
    E2eTest::SetUp();
  }

  static Json Parse(const Output& output) {
    EXPECT_EQ(output.status, 0) << output.Text();
    const Json parsed = Json::parse(output.out, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << output.Text();
    return parsed;
  }

  /// The features of the handler, with the options in that file.
  static Json Told(const std::string& options_file = "") {
    Words words{"plugins", "inspect-runtime", "--runtime", settings().runtime};
    if (!options_file.empty()) {
      words.insert(words.end(), {"--runtime-config-path", options_file});
    }
    return Parse(Ctr(words)).value("Features", Json());
  }

  static Json Own(const std::string& oci) { return Parse(RunProgram({oci, "features"})); }
};

TEST_F(CtrFeatures, AreThoseOfTheHandlersRuntime) {
  EXPECT_EQ(Told(), Own(settings().stock() ? "runc" : settings().oci));
}

TEST_F(CtrFeatures, AreThoseOfTheRuntimeThatOptionsName) {
  if (settings().stock()) {
    GTEST_SKIP() << "the stock runtime takes the name from options of its own type";
  }
  for (const std::string oci : {"crun", "runc"}) {
    const std::string file = settings().root + "/features-" + oci + ".toml";
    WriteText(file, "BinaryName = '" + oci + "'\n");
    const Json told = Told(file);
    EXPECT_EQ(told, Own(oci));
    EXPECT_TRUE(told.is_object() && told.contains("mountOptions")) << told;
  }
  EXPECT_NE(Own("crun"), Own("runc")) << "then this could not have shown a thing";
}

}  // namespace
}  // namespace gantry::e2e
