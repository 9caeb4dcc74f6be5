// SPDX-License-Identifier: Apache-2.0
//
// Images with a WebAssembly module in containerd's own store, in each of the forms that are in use:
// what gantry-wasm-fetch gets out of it. No container is run.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class WasmImages : public E2eTest {
 protected:
  /// What is answered for a container of build/images/NAME.tar.
  Json Answer(const std::string& name) {
    const std::string image = "docker.io/library/" + name + ":gantry";
    const Output imported =
        Ctr({"images", "import", "--all-platforms", settings().images + "/" + name + ".tar"});
    EXPECT_EQ(imported.status, 0) << imported.Text();
    const std::string id = Id("-" + name);
    const Output created = Ctr({"containers", "create", image, id});
    EXPECT_EQ(created.status, 0) << created.Text();
    const Json answer = Ask(node().address(), id);
    const Output removed = Ctr({"containers", "rm", id});
    EXPECT_EQ(removed.status, 0) << removed.Text();
    return answer;
  }

  /// Asks at `address`. The module goes into a file.
  Json Ask(const std::string& address, const std::string& id) {
    const Output asked =
        RunProgram({"/bin/sh", "-c", "exec \"$@\" 3>&1 4>\"$0\"", ModuleFile(),
                    settings().gantry_bin + "/gantry-wasm-fetch", "--address=" + address,
                    "--namespace=" + settings().ns, "--container=" + id, "--program=/hello.wasm",
                    "--max-bytes=1000000", "--result=3", "--module=4"});
    EXPECT_EQ(asked.status, 0) << asked.Text();
    const Json answer = Json::parse(asked.out, nullptr, false);
    EXPECT_TRUE(answer.is_object()) << asked.Text();
    return answer;
  }

  static std::string ModuleFile() { return settings().root + "/module.wasm"; }

  void TearDown() override {
    std::filesystem::remove(ModuleFile());
    E2eTest::TearDown();
  }

  /// The answer is the whole module, of that type.
  static void ExpectModule(const Json& answer, const std::string& type) {
    const std::string module = ReadText(ModuleFile());
    EXPECT_EQ(answer["platform"], Json({{"os", "wasip1"}, {"architecture", "wasm"}})) << answer;
    ASSERT_TRUE(answer.contains("module")) << answer;
    EXPECT_EQ(answer["module"]["mediaType"], type) << answer;
    EXPECT_EQ(answer["module"]["size"], module.size()) << answer;
    EXPECT_TRUE(module.starts_with(std::string("\0asm", 4)));
    EXPECT_THAT(module, HasSubstr("hello from wasm\n"));
  }
};

TEST_F(WasmImages, WithAModuleForALayerGiveIt) {
  for (const auto& [name, type] : std::map<std::string, std::string>{
           {"wasm-layer", "application/wasm"},
           {"wasm-component", "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm"},
           {"wasm-content", "application/vnd.wasm.content.layer.v1+wasm"}}) {
    SCOPED_TRACE(name);
    ExpectModule(Answer(name), type);
  }
}

TEST_F(WasmImages, WithFilesAndAModuleGiveTheModule) {
  const Json answer = Answer("wasm-both");
  ExpectModule(answer, "application/wasm");
  EXPECT_EQ(answer["layers"].size(), 2U) << answer;
}

TEST_F(WasmImages, WithTheModuleAsAFileGiveNone) {
  const Json answer = Answer("wasm-file");
  EXPECT_EQ(answer["platform"], Json({{"os", "wasi"}, {"architecture", "wasm"}})) << answer;
  EXPECT_FALSE(answer.contains("module")) << answer;
}

TEST_F(WasmImages, ForTheNodeGiveNone) {
  const Json answer = Answer("busybox");
  EXPECT_EQ(answer["platform"]["os"], "linux") << answer;
  EXPECT_FALSE(answer.contains("module")) << answer;
}

TEST_F(WasmImages, WithAnUnknownLayerNameIt) {
  const Json answer = Answer("wasm-unknown");
  ASSERT_TRUE(answer.contains("error")) << answer;
  EXPECT_EQ(answer["error"]["code"], "FAILED_PRECONDITION") << answer;
  EXPECT_THAT(answer["error"]["message"].get<std::string>(),
              HasSubstr("application/vnd.example.module.v1+wasm"));
}

TEST_F(WasmImages, OfNoContainerAreNotFound) {
  const Json answer = Ask(node().address(), Id("-none"));
  ASSERT_TRUE(answer.contains("error")) << answer;
  EXPECT_EQ(answer["error"]["code"], "NOT_FOUND") << answer;
  EXPECT_THAT(answer["error"]["message"].get<std::string>(), HasSubstr(Id("-none")));
}

}  // namespace
}  // namespace gantry::e2e
