// SPDX-License-Identifier: Apache-2.0
//
// The backend with fakes of what gantryd lends to it. Native containers are made by the real
// gantry-init; of modules a stand-in for gantry-wasm says what it was told, and artifacts are
// nobody's work. Needs root, and busybox, linked statically.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/container_context.h>
#include <gantry/testing/sandbox_context.h>

#include "plugins/wasm/backend.h"
#include "tests/unit/wasm/backend/root.h"

namespace gantry::wasm {

/// Artifacts that are their modules.
class FakeArtifacts : public ArtifactSource {
 public:
  Result<CompiledModule> Get(const ModuleBytes& module, const Asker& asker,
                             std::chrono::milliseconds limit) override;
  std::vector<BackendCount> Counts() const override;

  void Leave() override { left = true; }

  Status answer;
  Kind kind = Kind::kModule;
  int asked = 0;
  /// Of the module that was asked for last.
  uint32_t functions = 0;
  Asker asker;
  std::chrono::milliseconds limit{};
  bool left = false;
};

class WasmBackendTest : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kLimit{20};

  void SetUp() override;
  /// A backend anew, and a sandbox of it.
  void MakeBackendWith(const std::string& options, bool with_engine = true);
  /// The engine's end; the sandbox is taken up by the next one.
  void RestartEngine();

  /// The request of a container that runs `args`, a JSON array; `more` goes into its config.json.
  ContainerRequest Request(const std::string& args, const std::string& more = "") const;
  Result<std::unique_ptr<Container>> Create(const std::string& args, const std::string& more = "");
  static std::string ProcessOf(const std::string& args);

  /// What gantry-wasm was called with last, a word each.
  std::vector<std::string> Words() const;

  static uint32_t End(const FakeProcessContext& process) {
    return process.bound->Wait(kLimit).value().code();
  }

  TestRoot root_;
  FakeSandboxContext own_;
  FakeSandboxContext context_{Orphans::kAdopted};
  FakeContainerContext container_{"c1"};
  ContainerRequest request_;
  /// What the container's image has; null: it is not asked. Counts from `MakeBackendWith` on.
  std::function<Result<std::optional<ModuleBytes>>()> images_;
  std::optional<ImageModule> asked_image_;
  /// The program for the engine WasmEdge; empty: the build has none. As `images_`.
  std::string wasmedge_;
  /// Of the sandbox; empty: it has not said.
  std::string containerd_address_;
  FakeArtifacts* artifacts_ = nullptr;
  std::unique_ptr<SandboxBackend> backend_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace gantry::wasm
