// SPDX-License-Identifier: Apache-2.0
//
// Images with a WebAssembly module, in each of the forms that are in use, as containers of pods.
#include <gmock/gmock.h>

#include "tests/harness/wasm_pod.h"

namespace gantry::e2e {
namespace {

using testing::HasSubstr;

class WasmPodImages : public OneWasmPodTest {
 protected:
  /// Of build/images/NAME.tar, whose own command it runs. Its files are unpacked with the first
  /// container, where a pull does it. CRI learns of an image a moment later.
  ContainerConfig Of(const std::string& name) {
    const std::string image = "docker.io/library/" + name + ":gantry";
    ExpectRuns({"images", "import", "--all-platforms", settings().images + "/" + name + ".tar"});
    ExpectRuns({"containers", "create", image, "unpacked"});
    ExpectRuns({"containers", "rm", "unpacked"});
    EXPECT_TRUE(Eventually([&] { return cri().HasImage(image).value_or(false); })) << image;
    ContainerConfig container;
    container.name = name;
    container.image = image;
    return container;
  }

  void ExpectSaysHello(const std::string& name) {
    SCOPED_TRACE(name);
    const std::string id = Run(Of(name));
    if (id.empty()) {
      return;
    }
    EXPECT_EQ(WaitForEnd(id).exit_code(), 0);
    const std::string log = LogOf(name);
    EXPECT_TRUE(WaitForText(log, "stdout F hello from wasm\n")) << ReadText(log);
  }

  static void ExpectRuns(Words words) {
    words.insert(words.begin(), {"-n", "k8s.io"});
    const Output output = node().Ctr(words);
    EXPECT_EQ(output.status, 0) << output.Text();
  }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmPodImages, kSandboxers, SandboxerName);

TEST_P(WasmPodImages, WithTheModuleAsALayerRun) {
  ExpectSaysHello("wasm-layer");
  ExpectSaysHello("wasm-component");
  ExpectSaysHello("wasm-content");
}

TEST_P(WasmPodImages, WithFilesBesideItRun) {
  ExpectSaysHello("wasm-file");
  ExpectSaysHello("wasm-both");
}

TEST_P(WasmPodImages, WithALayerThatNobodyKnowsAreRefused) {
  const auto id = cri().Create(pod(), config(), Of("wasm-unknown"));
  ASSERT_TRUE(id) << id.error().message;
  const Status started = cri().Start(*id);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("application/vnd.example.module.v1+wasm"));
}

/// The containerd that is asked for the module is the one that the shim was started by, whose
/// socket is not where it usually is.
class WasmPodImagesPath : public WasmPodImages {
 protected:
  std::string handler() const override { return "gantry-path"; }
};

INSTANTIATE_TEST_SUITE_P(Sandboxer, WasmPodImagesPath, testing::Values("podsandbox"),
                         SandboxerName);

TEST_P(WasmPodImagesPath, RunAModuleThatIsALayer) { ExpectSaysHello("wasm-layer"); }

}  // namespace
}  // namespace gantry::e2e
