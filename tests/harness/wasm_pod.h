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
    ContainerConfig container;
    container.name = name;
    container.command = command;
    Bind(container, settings().guests, "/guests");
    return container;
  }

  /// For reading.
  static void Bind(ContainerConfig& container, const std::string& from, const std::string& to) {
    cri::Mount& mount = container.mounts.emplace_back();
    mount.set_host_path(from);
    mount.set_container_path(to);
    mount.set_readonly(true);
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

/// With one pod, which runs.
class OneWasmPodTest : public WasmPodTest {
 protected:
  void SetUp() override {
    WasmPodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    config_ = Pod();
    pod_ = RunPod(config_);
  }

  std::string Run(const ContainerConfig& container) {
    return RunContainerIn(pod_, config_, container);
  }

  std::string LogOf(const std::string& name) const { return WasmPodTest::LogOf(config_, name); }

  const PodConfig& config() const { return config_; }

  const std::string& pod() const { return pod_; }

 private:
  PodConfig config_;
  std::string pod_;
};

}  // namespace gantry::e2e
