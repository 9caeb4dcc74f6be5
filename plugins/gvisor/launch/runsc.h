// SPDX-License-Identifier: Apache-2.0
//
// A build of runsc: its programs, and what their internal commands `boot` and `gofer` take.
// These are not for others' use and change from release to release; so nothing is decided by
// version, which a build need not even tell, but by the flags that a binary lists.
// Source: gvisor, runsc/cmd/boot.go and gofer.go of the releases from 2024-07 to 2026-09.
#pragma once

#include <memory>
#include <set>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/files/file_identity.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

/// The flags that a binary lists, without dashes.
struct Dialect {
  std::set<std::string> global;
  std::set<std::string> boot;
  std::set<std::string> gofer;
  /// A gofer runs the hooks of createContainer: it is what it wants to be told its container for.
  bool gofer_runs_hooks = false;

  /// Of those that each launch needs the first that is missing; empty: none is.
  std::string Missing() const;
};

/// A program, open: it can be run after it has been replaced.
struct Program {
  std::string path;
  UniqueFd file;
};

/// Thread: any; does not change.
struct Runsc {
  Program runsc;
  /// The sentry on its own where the release has one, else `runsc` again, which is not opened
  /// twice.
  Program sentry;
  FileIdentity identity;
  FileIdentity sentry_identity;
  std::string version;
  /// The label of its release, and that of the sentry; empty: it tells none.
  std::string release;
  std::string sentry_release;
  Dialect dialect;

  bool has_sidecar() const { return sentry.path != runsc.path; }

  /// Its sentry is of another release, as far as they tell.
  bool IsMixed() const;

  const UniqueFd& sentry_file() const { return sentry.file ? sentry.file : runsc.file; }
};

/// What is wrong with a mixed one.
std::string WhyMixed(const Runsc& runsc);

/// What sets the release that a sidecar has to be of, `NAME=VALUE`; empty: nothing does. Sentry and
/// gofer speak a protocol of their release's, and two that differ may go wrong in any way, much
/// later too; so one that differs is refused where it begins. `same`: false: it only complains, in
/// its debug log. A gofer gets none: it is runsc itself.
/// Source: runsc 2026-09, runsc/gvisorbinaries/gvisorbinaries.go.
std::string ReleaseEnvironment(const Runsc& runsc, bool same);

/// Asks the binary. Errors: kFailedPrecondition: it does not answer. Blocks: up to some
/// seconds, mostly 0.1. Thread: any.
Result<std::shared_ptr<const Runsc>> ProbeRunsc(const std::string& path);

/// Why gantry cannot run its internal commands, as far as its help tells; empty: it may.
std::string WhatIsMissing(const Runsc& runsc);

/// Every ` -name` in a help text. For tests.
std::set<std::string> FlagsIn(std::string_view help);

}  // namespace gantry::gvisor
