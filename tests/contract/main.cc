// SPDX-License-Identifier: Apache-2.0
//
// The contract, for the tree's own backends as they are built: runc and the fake remote one,
// or those that GANTRY_CONTRACT_BACKENDS names: `wasm`, `gvisor` with the runsc of
// GANTRY_E2E_RUNSC, or `vmm` with the guest image of GANTRY_E2E_VMM_IMAGE.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/contract/harness/own_network.h"
#include "tests/contract/harness/setup.h"

namespace {

namespace fs = std::filesystem;

std::string Env(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    names.push_back(name);
  }
  return names;
}

std::vector<gantry::contract::Subject> Subjects(const fs::path& tests, const std::string& bin) {
  const std::string runsc = Env("GANTRY_CACHE", Env("HOME", "/root") + "/.cache/gantry") +
                            "/runsc/" + Env("GANTRY_E2E_RUNSC", "20260905") + "/bin/runsc";
  const std::string image = Env("GANTRY_E2E_VMM_IMAGE", tests / "../../vmm");
  return {
      {.name = "runc",
       .plugin = bin + "/plugins/libgantry_runc.so",
       .handler_options = R"({"BinaryName": "crun", "Root": "@ROOT@/oci"})",
       .programs = {"crun"}},
      {.name = "remote",
       .plugin = tests / "libgantry_remote.so",
       .backend_options = R"({"Server": ")" + (tests / "fake-remote-sandbox").string() + R"("})"},
      {.name = "gvisor",
       .plugin = bin + "/plugins/libgantry_gvisor.so",
       .handler_options = R"({"binary_name": ")" + runsc +
                          R"(", "root": "@ROOT@/runsc",)"
                          R"( "runsc_config": {"platform": "systrap", "overlay2": "none",)"
                          R"( "oci-seccomp": "true"}})",
       .programs = {runsc}},
      // Its native containers, which are made by gantry-init.
      {.name = "wasm",
       .plugin = bin + "/plugins/libgantry_wasm.so",
       .backend_options = R"({"cache_dir": "@ROOT@/wasm"})"},
      {.name = "vmm",
       .plugin = bin + "/plugins/libgantry_vmm.so",
       // Nearly each rule has a machine.
       .handler_options = R"({"kernel": ")" + image + R"(/kernel", "initrd": ")" + image +
                          R"(/initrd", "directory": "@ROOT@/vmm", "template": )" +
                          Env("GANTRY_CONTRACT_TEMPLATE", "1") + R"(, "accelerator": ")" +
                          Env("GANTRY_VMM_ACCEL", "auto") + R"("})",
       .programs = {"qemu-system-x86_64"}}};
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string bin = (tests / "../bin").lexically_normal();
  gantry::contract::Setup& setup = gantry::contract::TheSetup();
  setup.programs = bin;
  setup.subjects = Subjects(tests, bin);
  setup.tested = Names(Env("GANTRY_CONTRACT_BACKENDS", "runc,remote"));
  gantry::contract::OwnNetworks() = std::ranges::contains(setup.tested, "vmm");
  // Another than the tested is needed, too.
  std::erase_if(setup.subjects, [&](const auto& subject) {
    return subject.name != "runc" && !std::ranges::contains(setup.tested, subject.name);
  });
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
