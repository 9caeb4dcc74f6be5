// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests of guests in pods, of both kinds: guests of tests/guests, which are bound
// into containers of the busybox image, beside native programs of it.
#pragma once

#include <string>

#include "tests/harness/cri_pod.h"

namespace gantry::e2e {

class WasmPodTest : public CriPodTest {
 protected:
  void SetUp() override {
    if (!settings().wasm()) {
      GTEST_SKIP() << "is about the wasm backend";
    }
    CriPodTest::SetUp();
  }

  /// A container with the guests in /guests.
  static ContainerConfig Container(const std::string& name, const Words& command) {
    cri::Mount guests;
    guests.set_container_path("/guests");
    guests.set_host_path(settings().guests);
    guests.set_readonly(true);
    ContainerConfig container;
    container.name = name;
    container.command = command;
    container.mounts = {guests};
    return container;
  }

  /// The command of a guest; the first of `words` is its name.
  static Words Guest(Words words) {
    words.front() = "/guests/" + words.front() + ".wasm";
    return words;
  }

  static std::string LogOf(const PodConfig& config, const std::string& name) {
    return config.log_directory + "/" + name + ".log";
  }
};

}  // namespace gantry::e2e
