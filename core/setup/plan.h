// SPDX-License-Identifier: Apache-2.0
//
// What has to change on a node for containerd to know gantry's runtimes, or to forget them. A plan
// is made without changing anything, and shown; then it is carried out. containerd is never
// restarted.
//
// Where the runtimes go:
// - a file of our own, in a folder whose files the configuration imports, with containerd 2.0 and
//   later (see `Release::MergesImports`);
// - else a block at the end of containerd's configuration;
// - where k3s or rke2 write that themselves, at the end of the template that they make it from.
// Whichever it is, it is between the marks of block.h, and one of the other places is taken back.
//
// Thread: any. Blocks: on files, and for containerd.
#pragma once

#include <string>
#include <vector>

#include <gantry/error.h>

#include "core/setup/containerd.h"
#include "core/setup/file_change.h"
#include "core/setup/layout.h"
#include "core/setup/runtimes.h"

namespace gantry::setup {

struct Plan {
  /// In the order in which they are to be made; those that change nothing are left out.
  std::vector<FileChange> changes;
  /// Where the runtimes are, or will be.
  std::string place;
  /// What the operator should know.
  std::vector<std::string> notes;
};

/// Errors: kFailedPrecondition, kInvalidArgument, kUnimplemented and the errno's, with what to do:
/// what keeps containerd from being set up. `program`: containerd.
Result<Plan> PlanSetup(const Layout& layout, const Wanted& wanted, const std::string& program,
                       const Ask& ask);

/// All that earlier ones did is taken back. Nothing to do: no changes. Errors: as of the marks.
Result<Plan> PlanUndo(const Layout& layout);

/// Errors: of the first change that fails; those before it were made, and are taken back.
Status CarryOut(const Plan& plan);

}  // namespace gantry::setup
