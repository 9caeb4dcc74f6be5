// SPDX-License-Identifier: Apache-2.0
//
// A private gantry without a containerd: keeper and engine as they are
// installed, the backends of `TheSetup`, and the questions that a shim asks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/error.h>

#include "core/link/messages.h"
#include "tests/contract/harness/containerd.h"
#include "tests/harness/program.h"

namespace gantry::contract {

/// What every test's instances are announced with.
inline constexpr const char* kNamespace = "contract";

/// What a node has beside the backends of `TheSetup`, as lines of gantry.yaml.
struct NodeAdditions {
  /// Below `handlers`.
  std::string handlers;
  /// Below `backends`.
  std::string backends;
  /// Behind others, in `timeouts`.
  std::string timeouts;
  /// Other sections.
  std::string sections{};
  std::string stdio_open = "5s";
};

/// Thread: the test's.
class Node {
 public:
  Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Ends all that it has started and removes all it has made.
  ~Node();

  /// Kills what runs for it, and removes all it has made. For a program that is
  /// about to end; any thread.
  void Clean() const;

  /// Why the tests cannot run here; empty: they can.
  const std::string& unavailable() const { return unavailable_; }

  /// Returns what went wrong; empty: it runs.
  std::string Start(const NodeAdditions& more = {});

  const std::string& root() const { return root_; }

  std::string run_dir() const { return root_ + "/run"; }

  /// A root file system with busybox in it.
  std::string rootfs() const { return root_ + "/rootfs"; }

  /// The cgroup that everything of this run is below.
  std::string cgroup() const;

  FakeContainerd& containerd() { return *containerd_; }

  /// As the shim's `start`. The path of the socket.
  Result<std::string> Announce(const std::string& id, const std::string& handler,
                               const std::string& bundle, const std::string& group = "") const;

  /// What shims have from containerd, from now on; at first this process's.
  void SetRlimits(std::vector<link::Rlimit> rlimits) { rlimits_ = std::move(rlimits); }

  /// As the shim's `delete`.
  Result<link::Deleted> ShimDelete(const std::string& id, const std::string& bundle) const;
  Result<link::KeeperStatus> Query() const;
  /// As `gantryctl upgrade`. The new engine's pid.
  Result<pid_t> Upgrade(const std::string& program = "") const;

  /// As `gantryctl upgrade --keeper`. The keeper's pid.
  Result<pid_t> UpgradeKeeper(const std::string& program) const;

  pid_t keeper() const { return keeper_->pid(); }

  /// The engine that is up; waits for it.
  pid_t Engine() const;
  /// kill -9; returns when it is gone.
  void KillEngine() const;

  /// The engine's log, for a test that failed.
  std::string Log() const;

  std::string log_path() const { return run_dir() + "/gantry.log"; }

 private:
  void MakeRootfs() const;
  void WriteConfiguration(const NodeAdditions& more) const;

  std::string root_;
  std::string unavailable_;
  std::vector<link::Rlimit> rlimits_;
  std::unique_ptr<FakeContainerd> containerd_;
  std::unique_ptr<e2e::Program> keeper_;
};

}  // namespace gantry::contract
