// SPDX-License-Identifier: Apache-2.0
//
// New limits for a container whose cgroup is systemd's.
#include <filesystem>
#include <system_error>

#include <gantry/format.h>
#include <gantry/protowire.h>

#include "tests/harness/host.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr double kLimit = 1.2;

/// systemd is process 1 (sd_booted(3)), and there is no cgroup but version 2.
bool SystemdHasCgroups2() {
  std::error_code error;
  return std::filesystem::exists("/run/systemd/system", error) &&
         std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers", error);
}

/// The limits that the kubelet sends for a container. No two in a row are the same, so
/// there is something to change each time.
std::string Limits(int turn) {
  const int size = 1 + turn % 2;
  return Format(R"({{"cpu":{{"shares":{},"quota":{},"period":100000}},"memory":{{"limit":{}}}}})",
                512 * size, 50000 * size, (64 * size) << 20);
}

struct Target {
  Target(Lab& lab, const Side& side) : instance(lab, side) {}

  Instance instance;
  int turn = 0;
};

Result<Phases> OneUpdate(Target& target) {
  ProtoWriter resources;
  resources.Text(1, "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources");
  resources.Text(2, Limits(target.turn++));
  ProtoWriter request;
  request.Text(1, target.instance.id());
  request.Text(2, resources.str());
  Phases phases;
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(target.instance.Call("Update", request.Take()));
  phases.Add("Update", MillisecondsSince(begin));
  return phases;
}

Side WithSystemd(Side side) {
  side.systemd_cgroup = true;
  return side;
}

/// Neither side may be quick by leaving out what is asked for.
Status CheckArrived(const Target& target) {
  const std::string scope =
      "/sys/fs/cgroup/system.slice/gantry-bench-" + target.instance.id() + ".scope";
  const std::string expected = Format("{}\n", (64 * (1 + (target.turn - 1) % 2)) << 20);
  const std::string found = e2e::ReadText(scope + "/memory.max");
  if (found != expected) {
    return Fail(Code::kInternal, "update '{}': its scope's memory.max is '{}' in place of '{}'",
                target.instance.id(), found, expected);
  }
  return {};
}

}  // namespace

Status UpdateSystemdRow(Lab& lab, const Extent& extent, Report& report) {
  if (!SystemdHasCgroups2()) {
    report.AddNotHere("update-systemd", "systemd as process 1 and cgroup v2: ./run node -b");
    return {};
  }
  Target ours(lab, WithSystemd(lab.Gantry("runc")));
  Target peer(lab, WithSystemd(lab.Stock("runc")));
  GANTRY_CHECK_OK(ours.instance.Run({"sleep", "100000"}));
  GANTRY_CHECK_OK(peer.instance.Run({"sleep", "100000"}));
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds, [&] { return OneUpdate(ours); },
                                  [&] { return OneUpdate(peer); }));
  GANTRY_CHECK_OK(CheckArrived(ours));
  GANTRY_CHECK_OK(CheckArrived(peer));
  GANTRY_CHECK_OK(ours.instance.End());
  GANTRY_CHECK_OK(peer.instance.End());
  report.Add(Row{
      .id = "update-systemd",
      .what =
          "Update of CPU and memory limits of a container in a systemd scope, runc against runc",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(kLimit));
  return {};
}

}  // namespace gantry::bench
