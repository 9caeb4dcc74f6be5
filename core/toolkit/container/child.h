// SPDX-License-Identifier: Apache-2.0
//
// What the two children of the maker do, each until it ends or executes.
#pragma once

#include <optional>
#include <span>

#include <gantry/toolkit/container/make.h>

#include "core/toolkit/container/joined.h"
#include "core/toolkit/container/namespaces.h"
#include "core/toolkit/container/root_steps.h"
#include "core/toolkit/container/seccomp.h"

namespace gantry::container {

/// What the maker prepared; all of it is in the children's memory too.
struct Prepared {
  MakeRequest request;
  /// Null: the root stays the maker's.
  RootSteps* root = nullptr;
  Namespaces namespaces{};
  /// Null: the container is a new one.
  const Joined* joined = nullptr;
  std::optional<SeccompFilter> filter{};
  /// The maker's /proc.
  UniqueFd proc{};
  /// Of the thread that makes it; both children go on with a copy. Empty: not looked for.
  std::span<char> stack{};
};

/// The first child, of which `channel` is the only way back. Ends the process.
[[noreturn]] void RunFirstChild(Prepared& prepared, int channel);

/// The second one.
[[noreturn]] void RunSecondChild(Prepared& prepared, int channel);

/// clone3(2) as fork(2) is, with `flags` beside SIGCHLD. 0 in the child.
Result<pid_t> CloneProcess(uint64_t flags, UniqueFd* pidfd);

}  // namespace gantry::container
