// SPDX-License-Identifier: Apache-2.0
//
// gantry's Debian packages on a node that has nothing of it but them. Three releases lie in
// $GANTRY_NODE_PACKAGES: `before`, `now`, and `refuses`, a later one whose engine ends at once.
#pragma once

#include <string>

#include "tests/harness/program.h"
#include "tests/node/harness/node_test.h"

namespace gantry::node {

inline constexpr char kBefore[] = "before";
inline constexpr char kNow[] = "now";
inline constexpr char kRefuses[] = "refuses";

inline constexpr char kInstalledEngine[] = "/usr/libexec/gantry/gantryd";
inline constexpr char kHeldEngine[] = "/var/lib/gantry/previous/gantryd";

/// Each test takes care that the release is there which it begins with, and that the container
/// kept() runs, over all of them: so any of them can be run alone.
class PackagesTest : public NodeTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  static std::string kept() { return Oci() + "kept"; }

  static pid_t KeptPid() { return FindTask(kept()).pid; }

  /// By apt, what of these is not there. Fails the test where it is not installed then.
  static void Have(const std::string& release);
  /// All packages of a release, up or down.
  static e2e::Output Install(const std::string& release);
  /// `apt-get VERB` of all packages that are there.
  static e2e::Output Apt(const std::string& verb);
  /// Of the package gantry; empty: not installed.
  static std::string Version();
  static std::string VersionOf(const std::string& release);

  /// Starts kept() where it does not run. Fails the test where it does not start.
  static void HaveKept();

  /// The engine's program, without what the kernel adds where it was replaced.
  static std::string EngineProgram();
  /// Whether a process runs the file that is at `path` now.
  static bool Runs(pid_t pid, const std::string& path);
};

}  // namespace gantry::node
