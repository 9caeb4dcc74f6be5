// SPDX-License-Identifier: Apache-2.0
//
// The cache of compiled modules beside an engine that runs: what `gantryctl wasm` makes there is
// what Create looks for, and what it removes is what no image has.
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/harness/wasm_test.h"

namespace gantry::e2e {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class WasmCache : public WasmTest {
 protected:
  void SetUp() override {
    WasmTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    RunProgram({"mkdir", "-p", Folder()});
  }

  static std::string Folder() { return settings().root + "/own"; }

  static Output Gantryctl(const Words& words) {
    Words all{"env", "GANTRY_RUN_DIR=" + settings().run_dir, settings().gantry_bin + "/gantryctl"};
    all.insert(all.end(), words.begin(), words.end());
    return RunProgram(all);
  }

  /// `gantryctl wasm COMMAND` on the engine's cache; `words` behind its own.
  static Output Cache(const std::string& command, const Words& words) {
    Words all{"wasm", command, "--directory", settings().root + "/wasm"};
    all.insert(all.end(), words.begin(), words.end());
    return Gantryctl(all);
  }

  static Output Clean() { return Cache("clean", {"--unused", "0", "--address", node().address()}); }

  /// tool.wasm with a custom section more, so that no test before had it; the file's path.
  std::string OwnModule() {
    const std::string text = Id("-module");
    const auto size = static_cast<char>(text.size() + 2);
    const std::string path = Folder() + "/own.wasm";
    WriteText(path, ReadText(settings().guests + "/tool.wasm") + std::string(1, '\0') + size +
                        "\1x" + text);
    return path;
  }

  /// Runs it, and gives its exit code.
  int RunOwn() {
    const Output output = RunContainer(
        WithGuests({"--rm", "--mount", "type=bind,src=" + Folder() + ",dst=/own,options=rbind:ro"}),
        Id(), {"/own/own.wasm", "exit", "9"});
    EXPECT_EQ(output.status, 9) << output.Text();
    return output.status;
  }

  /// Of `gantryctl status`.
  static int64_t Count(const std::string& name) {
    const Output status = Gantryctl({"status"});
    std::smatch found;
    if (!std::regex_search(status.out, found, std::regex(name + " +([0-9]+)"))) {
      ADD_FAILURE() << name << " is not in " << status.Text();
      return -1;
    }
    return std::stoll(found[1]);
  }

  static std::string DigestOf(const std::string& path) {
    return "sha256:" + RunProgram({"sha256sum", path}).out.substr(0, 64);
  }

  /// A module of that digest is in the cache.
  static bool Has(const std::string& digest) {
    return Cache("cache", {"--json"}).out.contains(digest);
  }
};

TEST_F(WasmCache, HasWhatWasCompiledAheadOfTime) {
  ASSERT_EQ(RunGuest({"tool", "exit", "3"}).status, 3);  // There is an engine.
  const std::string path = OwnModule();
  const Output compiled = Cache("compile", {path});
  ASSERT_EQ(compiled.status, 0) << compiled.Text();
  EXPECT_THAT(compiled.out, HasSubstr(path + ": module " + DigestOf(path)));
  const int64_t compiles = Count("cache_compiles");
  const int64_t hits = Count("cache_disk_hits");
  RunOwn();
  EXPECT_EQ(Count("cache_compiles"), compiles);
  EXPECT_EQ(Count("cache_disk_hits"), hits + 1);
}

/// The other way round: what Create has compiled is not compiled again.
TEST_F(WasmCache, HasWhatACreateHasCompiled) {
  const std::string path = OwnModule();
  RunOwn();
  ASSERT_TRUE(Has(DigestOf(path)));
  const auto made = [&] {
    for (const Json& one : Json::parse(Cache("cache", {"--json"}).out)) {
      if (one["module"] == DigestOf(path)) {
        return one["made_at"].get<int64_t>();
      }
    }
    return int64_t{-1};
  };
  const int64_t before = made();
  EXPECT_EQ(Cache("compile", {path}).status, 0);
  EXPECT_EQ(made(), before);
}

TEST_F(WasmCache, HasTheLayerOfAnImage) {
  const Output imported =
      Ctr({"images", "import", "--all-platforms", settings().images + "/wasm-layer.tar"});
  ASSERT_EQ(imported.status, 0) << imported.Text();
  std::filesystem::remove_all(settings().root + "/wasm");
  const Words where{"--address", node().address(), "--namespace", settings().ns};
  Words words = where;
  words.emplace_back("docker.io/library/wasm-layer:gantry");
  const Output compiled = Cache("compile", words);
  ASSERT_EQ(compiled.status, 0) << compiled.Text();
  std::smatch found;
  ASSERT_TRUE(std::regex_search(compiled.out, found, std::regex("sha256:[0-9a-f]{64}")))
      << compiled.Text();
  EXPECT_TRUE(Has(found[0]));
  EXPECT_EQ(Clean().status, 0);
  EXPECT_TRUE(Has(found[0])) << "an image has it";

  words = where;
  words.emplace_back("docker.io/library/nobodys:1");
  const Output absent = Cache("compile", words);
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(absent.err, HasSubstr("docker.io/library/nobodys:1"));
  words.back() = kImage;
  const Output native = Cache("compile", words);
  EXPECT_EQ(native.status, 1);
  EXPECT_THAT(native.err, HasSubstr("none of its"));
}

/// By its content, wherever containerd mounts it; by the image's name it is not found.
TEST_F(WasmCache, HasTheFileOfAnImageThatIsMounted) {
  const std::string image = "docker.io/library/wasm-file:gantry";
  const Output imported =
      Ctr({"images", "import", "--all-platforms", settings().images + "/wasm-file.tar"});
  ASSERT_EQ(imported.status, 0) << imported.Text();
  const Output by_name =
      Cache("compile", {"--address", node().address(), "--namespace", settings().ns, image});
  EXPECT_EQ(by_name.status, 1);
  EXPECT_THAT(by_name.err, HasSubstr("ctr images mount"));
  const std::string place = Folder() + "/root";
  ASSERT_EQ(RunProgram({"mkdir", "-p", place}).status, 0);
  const Output mounted = Ctr({"images", "mount", "--platform", "wasi/wasm", image, place});
  ASSERT_EQ(mounted.status, 0) << mounted.Text();
  const std::string digest = DigestOf(place + "/hello.wasm");
  const Output compiled = Cache("compile", {place + "/hello.wasm"});
  const Output unmounted = Ctr({"images", "unmount", "--rm", place});
  EXPECT_EQ(compiled.status, 0) << compiled.Text();
  EXPECT_EQ(unmounted.status, 0) << unmounted.Text();
  EXPECT_TRUE(Has(digest)) << compiled.Text();
}

TEST_F(WasmCache, IsCleanedOfWhatNoImageHas) {
  const std::string path = OwnModule();
  const std::string digest = DigestOf(path);
  ASSERT_EQ(Cache("compile", {path}).status, 0);
  const Output ingested =
      RunProgram({"/bin/sh", "-c", "exec \"$@\" <\"$0\"", path, settings().containerd_bin + "/ctr",
                  "--address", node().address(), "--namespace", settings().ns, "content", "ingest",
                  "--expected-digest", digest, Id()});
  ASSERT_EQ(ingested.status, 0) << ingested.Text();
  ASSERT_EQ(Ctr({"content", "label", digest, "containerd.io/gc.root=now"}).status, 0);
  EXPECT_EQ(Clean().status, 0);
  EXPECT_TRUE(Has(digest)) << "containerd has it";
  ASSERT_EQ(Ctr({"content", "rm", digest}).status, 0);
  const Output cleaned = Clean();
  EXPECT_EQ(cleaned.status, 0) << cleaned.Text();
  EXPECT_FALSE(Has(digest));
  RunOwn();  // It is compiled again, or was in memory.
}

}  // namespace
}  // namespace gantry::e2e
