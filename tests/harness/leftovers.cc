// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/leftovers.h"

#include <sstream>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "core/link/channel.h"
#include "core/link/messages.h"
#include "tests/harness/vmm_node.h"

namespace gantry::e2e {
namespace {

// What an engine opens when it is needed first and keeps: one watch of fifos, and poll and
// wake-up of the thread that writes log files. A reconnect may happen to be under way, too.
constexpr int kDescriptorSlack = 6;
// What the engine keeps of each module that was compiled: there are as many guests, and less.
constexpr int kOfModules = 24;
constexpr auto kLimit = std::chrono::seconds(10);

void Add(std::string& report, const std::string& what, const std::vector<std::string>& items) {
  for (const std::string& item : items) {
    report += what + " " + item + "\n";
  }
}

void AddProcesses(std::string& report, const Node& node, const std::string& id_part) {
  auto left = ProcessesInCgroup("/" + node.settings().ns + "/" + id_part);
  const auto shims = Processes([&](const HostProcess& process) {
    return process.name.starts_with("containerd-shim-") &&
           process.command.find(node.address()) != std::string::npos;
  });
  left.insert(left.end(), shims.begin(), shims.end());
  if (!left.empty()) {
    report += "process" + Describe(left) + "\n";
  }
}

void AddDescriptors(std::string& report, const Node& node, const Baseline& baseline) {
  if (node.settings().stock() || baseline.keeper == 0) {
    return;
  }
  const HostProcess running = node.Keeper();
  if (running.pid == 0) {
    return;  // Killed by the test; the next container starts another.
  }
  const int keeper = CountDescriptors(running.pid);
  const int engine = CountDescriptors(node.Engine().pid);
  if (keeper > baseline.keeper + kDescriptorSlack || keeper < 0) {
    report += "keeper descriptors " + std::to_string(keeper) + ", before " +
              std::to_string(baseline.keeper) + "\n";
  }
  const int modules = node.settings().wasm() ? kOfModules : 0;
  if (engine > baseline.engine + kDescriptorSlack + modules || engine < 0) {
    report += "engine descriptors " + std::to_string(engine) + ", before " +
              std::to_string(baseline.engine) + "\n";
  }
}

/// Ends of processes that nobody has acknowledged.
void AddKeptExits(std::string& report, const Node& node) {
  if (node.settings().stock() || node.Keeper().pid == 0) {
    return;
  }
  Result<UniqueFd> socket = ConnectUnix(node.settings().run_dir + "/keeper.sock");
  if (!socket) {
    report += "no answer of the keeper: " + socket.error().message + "\n";
    return;
  }
  link::BlockingChannel channel(std::move(*socket));
  const auto status = channel.Ask<link::KeeperStatus>(link::Query(), Clock::now() + kLimit);
  if (!status) {
    report += "no answer of the keeper: " + status.error().message + "\n";
  } else if (status->exits_kept > 0) {
    report += "exits kept " + std::to_string(status->exits_kept) + "\n";
  }
}

std::string Look(const Node& node, const Baseline& baseline, const std::string& id_part) {
  const Settings& settings = node.settings();
  std::string report;
  AddProcesses(report, node, id_part);
  Add(report, "mount", MountsBelow(node.state()));
  Add(report, "bundle", ListFolder(node.bundles()));
  Add(report, "work folder",
      ListFolder(settings.root + "/root/io.containerd.runtime.v2.task/" + settings.ns));
  for (const std::string& folder : CgroupFolders("/" + settings.ns)) {
    Add(report, "cgroup", FindNames(folder, id_part));
  }
  for (const std::string& folder : ListFolder(node.fifo_dir())) {
    for (const std::string& name : ListFolder(node.fifo_dir() + "/" + folder)) {
      report += "fifo " + folder + "/" + name + "\n";
    }
  }
  Add(report, "socket", ListFolder(settings.run_dir + "/s"));
  Add(report, "record", FindNames(settings.run_dir, id_part));
  Add(report, "OCI state", ListFolder("/run/containerd/runc/" + settings.ns));
  if (settings.vmm()) {
    std::vector<std::string> folders = ListFolder(VmmFolder(settings));
    // The backend's own: whose VMs are whose, and what templates are kept in.
    std::erase_if(folders, [](const std::string& name) {
      return name == "users" || name == "templates" || name == "warm";
    });
    Add(report, "folder of a machine", folders);
    Add(report, "mount", MountsBelow(VmmFolder(settings)));
  }
  AddDescriptors(report, node, baseline);
  AddKeptExits(report, node);
  return report;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Containers(const Node& node) {
  std::vector<std::string> lines = Lines(node.Ctr({"containers", "ls", "-q"}).out);
  for (std::string& line : lines) {
    line.insert(0, "container ");
  }
  return lines;
}

}  // namespace

std::set<std::string> WhatIsThere(const Node& node, const std::string& id_part) {
  const std::vector<std::string> found = Lines(Look(node, {}, id_part));
  std::set<std::string> lines(found.begin(), found.end());
  const std::vector<std::string> containers = Containers(node);
  lines.insert(containers.begin(), containers.end());
  return lines;
}

Baseline ReadBaseline(const Node& node) {
  const HostProcess keeper = node.Keeper();
  const HostProcess engine = node.Engine();
  if (keeper.pid == 0 || engine.pid == 0) {
    return {};
  }
  return {CountDescriptors(keeper.pid), CountDescriptors(engine.pid)};
}

std::string Leftovers(const Node& node, const Baseline& baseline, const std::string& id_part,
                      std::set<std::string>& known) {
  std::vector<std::string> left;
  const auto is_known = [&](const std::string& line) { return known.contains(line); };
  Eventually(
      [&] {
        left = Lines(Look(node, baseline, id_part));
        std::erase_if(left, is_known);
        return left.empty();
      },
      // What a client of containerd has left goes with its next collection of garbage.
      kDeadline);
  for (const std::string& container : Containers(node)) {
    if (!is_known(container)) {
      left.push_back(container);
    }
  }
  std::string report;
  for (const std::string& line : left) {
    known.insert(line);
    report += line + "\n";
  }
  return report;
}

void Sweep(const Node& node) {
  for (const std::string& id : Lines(node.Ctr({"tasks", "ls", "-q"}).out)) {
    node.Ctr({"tasks", "rm", "-f", id}, {}, std::chrono::seconds(15));
  }
  for (const std::string& id : Lines(node.Ctr({"containers", "ls", "-q"}).out)) {
    node.Ctr({"containers", "rm", id});
  }
  const auto stuck = ProcessesInCgroup("/" + node.settings().ns + "/");
  for (const HostProcess& process : stuck) {
    RunProgram({"kill", "-9", std::to_string(process.pid)});
  }
  RunProgram({"sh", "-c", "rm -rf '" + node.fifo_dir() + "'/*"});
}

}  // namespace gantry::e2e
