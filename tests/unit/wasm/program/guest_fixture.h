// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm, with its own engine or the scripted one (GANTRY_WASM_PROGRAM), started as a backend
// starts it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/init/gated_process.h>

#include "tests/unit/toolkit/container/bundle.h"

namespace gantry::wasm {

inline constexpr std::chrono::seconds kGuestLimit{20};

/// A container of one guest, or an exec in one.
class GuestProcess {
 public:
  GuestProcess(FakeSandboxContext& sandbox, const std::string& exec = "");

  /// `script`: the artifact. `words`: in place of `--kind=module`.
  Status Make(GatedRequest request, const std::string& script, std::vector<std::string> words);

  Status Open() { return gated_.Open(); }

  /// Into its input, which stays open.
  void Say(const std::string& text);

  void CloseInput() { client_.in.reset(); }

  /// What it has written, once it has ended: its output, its errors and its exit code.
  std::string Rest();
  /// Once `wanted` has been written: all that has.
  std::string Output(const std::string& wanted) const;

  uint32_t End() const { return context_.bound->Wait(kGuestLimit).value().code(); }

  void Signal(int number) const;

  const std::shared_ptr<HostProcess>& host() const { return gated_.host(); }

  FakeProcessContext& context() { return context_; }

 private:
  FakeProcessContext context_;
  ClientStreams client_;
  GatedProcess gated_;
};

class GuestTest : public testing::Test {
 protected:
  void SetUp() override;

  GatedRequest RequestOf(const container::Config& config) const;

  /// Of a container with this guest: its output, its errors and `exit N`, or `CODE: message`.
  std::string Run(const std::string& script, const container::Config& config = {},
                  std::vector<std::string> words = {"--kind=module"});

  /// One that is made, and waits at its gate.
  std::unique_ptr<GuestProcess> Made(const std::string& script,
                                     const container::Config& config = {});

  container::Bundle bundle_;
  FakeSandboxContext sandbox_{Orphans::kAdopted};
};

}  // namespace gantry::wasm
