// SPDX-License-Identifier: Apache-2.0
//
// One source for all the plugins of the test: TEST_PLUGIN_* says what is wrong
// with this one.
#include <csignal>
#include <stdexcept>

#include <gantry/backend.h>
#include <gantry/plugin.h>

namespace {

class TestBackend : public gantry::SandboxBackend {
 public:
  gantry::BackendInfo Describe() override { return {"test", "1.2.3", false, {}}; }

  gantry::Status CheckOptions(const std::string& options_json) override {
    if (options_json != "{}") {
      return gantry::Fail(gantry::Code::kInvalidArgument, "check option 'Speed': no such key");
    }
    return {};
  }

  /// The second time it throws, as `Leave` does.
  std::vector<gantry::BackendCount> Counts() override {
    if (counted_) {
      throw std::runtime_error("cannot count");
    }
    counted_ = true;
    return {{"fast", "ready", 3}};
  }

  void Leave() override { throw std::runtime_error("stays"); }

  gantry::Result<std::unique_ptr<gantry::Sandbox>> CreateSandbox(const gantry::SandboxRequest&,
                                                                 gantry::SandboxContext&) override {
    throw std::runtime_error("no sandbox here");
  }

  gantry::Result<std::unique_ptr<gantry::Sandbox>> RecoverSandbox(const gantry::SandboxRequest&,
                                                                  gantry::SandboxContext&,
                                                                  const std::string&) override {
    throw 42;
  }

 private:
  bool counted_ = false;
};

[[maybe_unused]] gantry::Result<std::unique_ptr<gantry::SandboxBackend>> Create(
    [[maybe_unused]] const std::string& options_json) {
#if defined(TEST_PLUGIN_THROWS)
  throw std::runtime_error("out of luck");
#elif defined(TEST_PLUGIN_NULL)
  return nullptr;
#else
  if (options_json != "{}") {
    return gantry::Fail(gantry::Code::kInvalidArgument, "option 'x': unknown");
  }
  return std::make_unique<TestBackend>();
#endif
}

}  // namespace

#if defined(TEST_PLUGIN_GOOD) || defined(TEST_PLUGIN_THROWS) || defined(TEST_PLUGIN_NULL)
GANTRY_PLUGIN("test", "1.2.3", Create);
#elif defined(TEST_PLUGIN_CRASHES)
// The sanitizers leave this signal alone.
[[gnu::constructor]] static void Crash() { std::raise(SIGABRT); }

GANTRY_PLUGIN("test", "1.2.3", Create);
#elif defined(TEST_PLUGIN_NO_SYMBOL)
extern "C" __attribute__((visibility("default"))) int something_else;
int something_else = 1;
#elif defined(TEST_PLUGIN_NEEDS)
extern "C" int gantry_test_absent();
extern "C" __attribute__((visibility("default"))) int gantry_test_call();

int gantry_test_call() { return gantry_test_absent(); }

GANTRY_PLUGIN("test", "1.2.3", Create);
#elif defined(TEST_PLUGIN_UNRESOLVED)
extern "C" int gantry_test_nobody_defines_this();
extern "C" __attribute__((visibility("default"))) int gantry_test_call();

int gantry_test_call() { return gantry_test_nobody_defines_this(); }

GANTRY_PLUGIN("test", "1.2.3", Create);
#else
extern "C" __attribute__((visibility("default"))) const gantry::PluginDescriptor gantry_plugin;
const gantry::PluginDescriptor gantry_plugin = {
#if defined(TEST_PLUGIN_MAGIC)
    1,
#else
    gantry::kPluginMagic,
#endif
#if defined(TEST_PLUGIN_VERSION)
    gantry::kInterfaceVersion + 1,
#elif defined(TEST_PLUGIN_OLDER)
    gantry::kInterfaceVersion - 1,
#else
    gantry::kInterfaceVersion,
#endif
#if defined(TEST_PLUGIN_SIZE)
    8,
#else
    sizeof(gantry::PluginDescriptor),
#endif
#if defined(TEST_PLUGIN_FINGERPRINT)
    "another-compiler",
#else
    GANTRY_BUILD_FINGERPRINT,
#endif
    "test",
    "1.2.3",
#if defined(TEST_PLUGIN_NO_FACTORY)
    nullptr,
#else
    Create,
#endif
};
#endif
