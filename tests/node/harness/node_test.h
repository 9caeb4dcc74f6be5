// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests of a node: gantry, containerd and systemd as installed. Each
// test begins with all of them up and ends with nothing left of its containers.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/harness/host.h"
#include "tests/node/harness/ctr.h"
#include "tests/node/harness/systemd.h"

namespace gantry::node {

class NodeTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// An id that no other test has, and no run with the other OCI runtime.
  std::string Id(const std::string& suffix = "");
  /// Detached, with systemd's cgroups: its scope is Scope(id). Fails the test when it
  /// does not start. Removed at the test's end.
  void Start(const std::string& id, const Words& command, const Words& flags = {});

  /// Removes it now, and asks that nothing is left.
  void End(const std::string& id);
  void EndAll();

  static std::string Scope(const std::string& id) { return "gantry-" + id + ".scope"; }

  /// The scope's folder.
  static std::string CgroupFolder(const std::string& id) {
    return "/sys/fs/cgroup/system.slice/" + Scope(id);
  }

  /// A number of one of the files of the container's cgroup; -1: not there.
  static long CgroupNumber(const std::string& id, const std::string& file);

  static pid_t Keeper() { return MainPid(kKeeperUnit); }

  static pid_t Engine();

  /// SIGTERM until none runs: of a keeper that guards nothing. It keeps what it had to
  /// do with containers that are gone for a while.
  static bool EndKeeper();

  /// Of a test that leaves them for the next boot.
  void Keep() { started_.clear(); }

 private:
  std::vector<std::string> started_;
};

/// What is left of containers whose ids begin with `prefix`; empty = nothing. Fifos are
/// ctr's: it leaves them where a task is gone before it is deleted.
std::string Leftovers(const std::string& prefix);

}  // namespace gantry::node
