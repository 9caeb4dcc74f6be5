// SPDX-License-Identifier: Apache-2.0
//
// Where the rows are measured: one private folder with the two sides, a
// containerd for the rows that need one, and what shims are given when they are
// driven without.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/harness/node.h"
#include "tests/performance/events_endpoint.h"

namespace gantry::bench {

/// One of the two that are compared.
struct Side {
  bool stock = false;
  std::string shim;     ///< The binary that containerd executes.
  std::string oci;      ///< Name of the OCI runtime; empty: none.
  std::string runtime;  ///< The runtime type that means this with containerd.
  std::map<std::string, std::string> env;
  bool systemd_cgroup = false;  ///< Option SystemdCgroup: cgroups are systemd's scopes.
  /// Calls are cut off after this.
  std::chrono::seconds limit{30};
};

/// Thread: one.
class Lab {
 public:
  explicit Lab(const e2e::Settings& settings);
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  /// Ends everything that was started and removes the folder.
  ~Lab();

  Status SetUp();

  Side Gantry(const std::string& oci) const;
  Side Stock(const std::string& oci) const;

  /// Started at the first call, with one container of each side run on it.
  Result<e2e::Node*> Containerd();

  /// Ends keeper and engine of a side of gantry's; the next shim starts new ones.
  void EndGantry(const Side& side) const;

  std::string NewId(const Side& side);

  const std::string& root() const { return settings_.root; }

  const std::string& ns() const { return settings_.ns; }

  std::string bundles() const { return root() + "/b"; }

  /// For what is on disk on a node: upper layers.
  std::string disk() const { return root() + "/d"; }

  std::string rootfs() const { return root() + "/rootfs"; }

  std::string socket_dir() const { return root() + "/s"; }

  /// Where shims that are driven without containerd think that it is.
  std::string address() const { return root() + "/e.sock"; }

  const std::string& run_dir() const { return settings_.run_dir; }

  /// The folder of gantry's programs, without links.
  const std::string& programs() const { return programs_; }

  const std::string& default_spec() const { return default_spec_; }

  std::string containerd_program() const { return settings_.containerd_bin + "/containerd"; }

  const std::string& release() const { return settings_.release; }

  const e2e::Settings& settings() const { return settings_; }

 private:
  Status LinkPrograms();
  Status MakeRootfs();

  e2e::Settings settings_;
  std::string programs_;
  std::string default_spec_;
  EventsEndpoint events_;
  std::unique_ptr<e2e::Node> node_;
  int next_id_ = 0;
};

}  // namespace gantry::bench
