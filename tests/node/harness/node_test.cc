// SPDX-License-Identifier: Apache-2.0
#include "tests/node/harness/node_test.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace gantry::node {
namespace {

void Add(std::string& report, const std::string& what, const std::vector<std::string>& items) {
  for (const std::string& item : items) {
    report += what + " " + item + "\n";
  }
}

}  // namespace

void NodeTest::SetUp() {
  const e2e::Output active = Systemctl({"is-active", kKeeperSocket, kEngineUnit, kContainerdUnit});
  ASSERT_EQ(active.out, "active\nactive\nactive\n");
}

void NodeTest::TearDown() {
  EndAll();
  EXPECT_NE(Engine(), 0);
  const std::string failed = Systemctl({"list-units", "--failed", "--plain", "--no-legend"}).out;
  EXPECT_EQ(failed.find("gantry"), std::string::npos) << failed;
}

void NodeTest::EndAll() {
  while (!started_.empty()) {
    // A copy: the element goes.
    const std::string id = started_.back();
    End(id);
  }
}

void NodeTest::End(const std::string& id) {
  std::erase(started_, id);
  EXPECT_EQ(Remove(id), "");
  std::string left;
  e2e::Eventually([&] {
    left = Leftovers(id);
    return left.empty();
  });
  EXPECT_EQ(left, "") << "left of " << id;
}

std::string NodeTest::Id(const std::string& suffix) {
  static int counter = 0;
  return Oci() + std::to_string(++counter) + suffix;
}

void NodeTest::Start(const std::string& id, const Words& command, const Words& flags) {
  Words all{"-d", "--cgroup", "system.slice:gantry:" + id};
  all.insert(all.end(), flags.begin(), flags.end());
  started_.push_back(id);
  const e2e::Output started = CtrRun(id, command, all);
  ASSERT_EQ(started.status, 0) << started.Text();
}

long NodeTest::CgroupNumber(const std::string& id, const std::string& file) {
  const std::string text = e2e::ReadText(CgroupFolder(id) + "/" + file);
  return text.empty() ? -1 : std::atol(text.c_str());
}

pid_t NodeTest::Engine() {
  pid_t engine = 0;
  const pid_t keeper = Keeper();
  e2e::Eventually([&] {
    const auto found = e2e::Processes([&](const e2e::HostProcess& process) {
      return process.parent == keeper && process.name == "gantryd";
    });
    engine = found.empty() ? 0 : found.front().pid;
    return engine != 0;
  });
  return engine;
}

bool NodeTest::EndKeeper() {
  return e2e::Eventually([keeper = Keeper()] {
    if (Keeper() == keeper) {
      Systemctl({"kill", "--kill-whom=main", kKeeperUnit});
    }
    return Keeper() == 0;
  });
}

std::string Leftovers(const std::string& prefix) {
  std::string report;
  const auto processes = e2e::ProcessesInCgroup(prefix);
  if (!processes.empty()) {
    report += "process" + e2e::Describe(processes) + "\n";
  }
  Add(report, "cgroup", e2e::FindNames("/sys/fs/cgroup", prefix));
  Add(report, "bundle", e2e::FindNames("/run/containerd/io.containerd.runtime.v2.task", prefix));
  Add(report, "work folder",
      e2e::FindNames("/var/lib/containerd/io.containerd.runtime.v2.task", prefix));
  for (const std::string& point : e2e::MountsBelow("/run/containerd")) {
    if (point.find("/" + prefix) != std::string::npos) {
      report += "mount " + point + "\n";
    }
  }
  const std::string units =
      Systemctl({"list-units", "--all", "--plain", "--no-legend", "*" + prefix + "*"}).out;
  return units.empty() ? report : report + "unit " + units;
}

}  // namespace gantry::node
