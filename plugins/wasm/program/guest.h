// SPDX-License-Identifier: Apache-2.0
//
// The guest of a container: brought up by the engine (engine/include/gantry_wasm_engine.h) in the
// process that is the container's, and run there.
#pragma once

#include <string>
#include <vector>

#include <gantry/toolkit/container/built_in_program.h>
#include <gantry/unique_fd.h>

#include "plugins/wasm/program/words.h"

struct gantry_wasm_run;

namespace gantry::wasm {

/// What the engine that a program is linked with has of its own.
struct GuestEngine {
  /// Of the program, as errors and lists of processes have it.
  const char* program;
  /// Its modules of WASI preview 1 can make sockets, which that knows none of.
  bool modules_have_sockets = false;
};

/// Its exit code is the guest's; or one of these.
/// The guest has trapped, as one that abort(3) ends: 128 and SIGABRT.
inline constexpr int kTrapped = 134;
/// The engine could not bring it up, as shells have it for what they cannot execute.
inline constexpr int kNotRun = 126;

class Guest final : public container::BuiltInProgram {
 public:
  /// `words`: borrowed, and complete by the time that anything is called.
  Guest(const Words& words, const GuestEngine& engine) : words_(words), engine_(engine) {}

  std::vector<int> Descriptors() const override;

  /// Errors: kInvalidArgument: the words, or the artifact; kFailedPrecondition: an import that
  /// the engine does not have, or an export that the guest does not have, is named; those of
  /// `Listen`; kInternal.
  Status Prepare(const container::ProgramStart& start) override;

  Result<std::vector<sock_filter>> Filter(const container::AfterFilter& after) override;

  /// What ends it but itself is said on its standard error.
  int Run() override;

 private:
  Status BringUp(const container::ProgramStart& start);

  const Words& words_;
  const GuestEngine engine_;
  struct gantry_wasm_run* run_ = nullptr;
};

}  // namespace gantry::wasm
