// SPDX-License-Identifier: Apache-2.0
//
// The contract, for the tree's own backends as they are built: runc and the fake
// remote one.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/contract/harness/setup.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const fs::path tests = fs::read_symlink("/proc/self/exe").parent_path();
  const std::string bin = (tests / "../bin").lexically_normal();
  gantry::contract::TheSetup() = {
      .programs = bin,
      .subjects = {{.name = "runc",
                    .plugin = bin + "/plugins/libgantry_runc.so",
                    .handler_options = R"({"BinaryName": "crun", "Root": "@ROOT@/oci"})",
                    .programs = {"crun"}},
                   {.name = "remote",
                    .plugin = tests / "libgantry_remote.so",
                    .backend_options =
                        R"({"Server": ")" + (tests / "fake-remote-sandbox").string() + R"("})"}}};
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
