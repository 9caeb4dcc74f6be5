// SPDX-License-Identifier: Apache-2.0
//
// A private containerd with gantry in its PATH: own root, state, sockets,
// configuration and namespace. The host's containerd is never touched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/harness/host.h"
#include "tests/harness/program.h"
#include "tests/harness/settings.h"

namespace gantry::e2e {

/// Thread: the test's.
class Node {
 public:
  explicit Node(Settings settings);

  /// Writes the configuration, starts containerd and imports the images.
  /// Returns what went wrong; empty = nothing.
  std::string SetUp();

  std::string StartContainerd();
  /// kill -9, as the kernel's OOM killer would.
  void KillContainerd();
  std::string RestartContainerd();

  bool has_containerd() const { return containerd_ != nullptr; }

  /// `ctr` with this containerd's address and namespace.
  std::vector<std::string> CtrWords(const std::vector<std::string>& words) const;
  Output Ctr(const std::vector<std::string>& words, std::optional<std::string_view> input = {},
             Duration deadline = kDeadline) const;

  const Settings& settings() const { return settings_; }

  std::string address() const { return settings_.address(); }

  std::string log_path() const { return settings_.root + "/containerd.log"; }

  std::string fifo_dir() const { return settings_.root + "/fifo"; }

  std::string state() const { return settings_.root + "/state"; }

  /// The folder with one bundle for each task of the run's namespace.
  std::string bundles() const { return state() + "/io.containerd.runtime.v2.task/" + settings_.ns; }

  /// gantry's processes of this node; pid 0 when there is none.
  HostProcess Keeper() const;
  HostProcess Engine() const;

 private:
  void WriteConfiguration() const;

  Settings settings_;
  std::unique_ptr<Program> containerd_;
};

/// The text of containerd's configuration file for this node.
std::string ContainerdConfiguration(const Settings& settings, const std::string& address);
/// The text of gantry's.
std::string GantryConfiguration(const Settings& settings);
/// CNI, for pods with a network of their own: a list of one plugin, and the plugin.
std::string NetworkConfiguration();
std::string NetworkPlugin(const Settings& settings);

}  // namespace gantry::e2e
