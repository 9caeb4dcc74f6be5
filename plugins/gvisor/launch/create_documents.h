// SPDX-License-Identifier: Apache-2.0
//
// The documents that `runsc create` is given, and those that it leaves.
// Source: runsc 20240729 and 2026-09, runsc/container, runsc/sandbox, runsc/specutils.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gantry/error.h>

#include "plugins/gvisor/spec/spec.h"

namespace gantry::gvisor {

/// The config.json for it: the spec with what gantry itself has taken out for its own launcher,
/// and without what it does itself (flags by annotation, hooks). `image`: the number of a
/// descriptor of the command that is the root's image; else an image is where the spec says.
/// Errors: kInternal.
Result<std::string> CreateDocument(const Spec& spec, std::optional<int> image);

/// What it tells in its state file.
struct CreateState {
  int32_t sentry = 0;
  /// 0: there is none.
  int32_t gofer = 0;
  /// Of the control server.
  std::string socket;
};

/// Errors: kInternal naming what is not in it.
Result<CreateState> ReadCreateState(std::string_view text);

/// Why it failed, by its log, which is the log of sentry and gofer, too: its own last words, and
/// the first ones, which are the cause. Empty: the log says nothing.
std::string CreateWords(std::string_view log);

}  // namespace gantry::gvisor
