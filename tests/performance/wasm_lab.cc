// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/wasm_lab.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "tests/harness/program.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

/// As many milliseconds as fit a guest's long.
constexpr const char* kDays = "2000000000";

/// By name in tests/guests, and where they are in the root.
const std::vector<std::pair<std::string, std::string>>& Guests() {
  static const std::vector<std::pair<std::string, std::string>> guests{
      {"tool.wasm", "/tool.wasm"},
      {"proxy_component.wasm", "/proxy.wasm"},
      {"cpu.wasm", "/cpu.wasm"},
      {"cpu", "/bin/cpu"},
      {"words.wasm", "/words.wasm"}};
  return guests;
}

}  // namespace

std::vector<std::string> WasmThatEnds() { return {kWasmTool, "exit", "0"}; }

std::vector<std::string> WasmThatSpeaks() { return {kWasmTool, "streams", "here"}; }

std::vector<std::string> WasmThatSleeps() { return {kWasmTool, "sleep", kDays}; }

std::string WithoutWasm(const Lab& lab) {
  const std::string plugin = lab.programs() + "/plugins/libgantry_wasm.so";
  std::error_code error;
  if (!fs::exists(plugin, error)) {
    return "the wasm backend is not built: " + plugin;
  }
  for (const auto& [name, where] : Guests()) {
    const std::string guest = lab.settings().guests + "/" + name;
    if (!fs::exists(guest, error)) {
      return "its guests are not built: " + guest;
    }
  }
  return "";
}

std::string WithoutWasmPeer() {
  // crun loads the library when it is asked to run a module.
  const e2e::Output able = e2e::RunProgram(
      {"sh", "-c",
       "crun --version | grep -q WASM:wasmedge && ldconfig -p | grep -q libwasmedge.so.0"});
  return able.status == 0 ? ""
                          : "Debian 13's crun, and its libwasmedge0, which it loads: run "
                            "tools/setup bench";
}

Status AddGuests(const Lab& lab) {
  for (const auto& [name, where] : Guests()) {
    std::error_code error;
    fs::copy_file(lab.settings().guests + "/" + name, lab.rootfs() + where,
                  fs::copy_options::skip_existing, error);
    if (error) {
      return FailErrno(error.value(), "copy the guest '{}'", name);
    }
  }
  return {};
}

Status ImportGuests(Lab& lab) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  const std::string archive = lab.settings().images + "/wasm-tool.tar";
  for (const std::string& ns : {lab.ns(), std::string("k8s.io")}) {
    const e2e::Output imported =
        e2e::RunProgram({lab.settings().containerd_bin + "/ctr", "-a", node->address(), "-n", ns,
                         "images", "import", archive});
    if (imported.status != 0) {
      return Fail(Code::kInternal, "import '{}': {}", archive, imported.Text());
    }
  }
  return {};
}

Side WasmSide(const Lab& lab) {
  Side side = lab.Gantry("wasm");
  side.oci.clear();
  return side;
}

Side WasmPeer(const Lab& lab) { return lab.Stock("crun"); }

}  // namespace gantry::bench
