// SPDX-License-Identifier: Apache-2.0
//
// Pods on the node's network, through CRI: gantry's without a pause container
// against the stock shim's with one.
#include <algorithm>

#include "tests/harness/host.h"
#include "tests/performance/execution_counter.h"
#include "tests/performance/figures.h"
#include "tests/performance/pods.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr const char* kStock = "stock";
constexpr int kBatch = 30;
constexpr int kKept = 50;

Row MakeRow(const std::string& id, const std::string& what, const std::string& unit, double ours,
            double peer) {
  return {
      .id = id, .what = what, .unit = unit, .ours = ours, .peer = peer, .target = "", .met = {}};
}

/// Both sides in turns, WORD HANDLER NAME COUNT each.
Result<Row> Compare(Lab& lab, Pods& pods, const Extent& extent, Row row, const std::string& word,
                    const std::string& handler, int count) {
  const auto measure = [&](const std::string& side) {
    return [&lab, &pods, word, side, count] {
      return pods.Timed(lab, word, side, std::to_string(count));
    };
  };
  GANTRY_TRY(const Pair pair,
             Alternate(extent.warm(), extent.rounds, measure(handler), measure(kStock)));
  row.ours = pair.ours.MedianTotal();
  row.peer = pair.peer.MedianTotal();
  return row;
}

/// What holds the namespaces of a side's pods.
std::vector<pid_t> Holders(const Lab& lab, const Side& side) {
  const std::vector<pid_t> parents = Processes(lab, side);
  const char* const name = side.stock ? "pause" : "gantry-pause";
  const auto found = e2e::Processes([&](const e2e::HostProcess& process) {
    return process.name == name && std::ranges::contains(parents, process.parent);
  });
  std::vector<pid_t> pids;
  for (const e2e::HostProcess& process : found) {
    pids.push_back(process.pid);
  }
  return pids;
}

struct Held {
  double all = 0;
  double one = 0;
};

/// With `kKept` pods.
Result<Held> Keep(Lab& lab, Pods& pods, const Side& side, const std::string& handler) {
  GANTRY_TRY([[maybe_unused]] const double took,
             pods.Do("keep " + handler + " " + lab.NewId(side) + " " + std::to_string(kKept)));
  const std::vector<pid_t> holders = Holders(lab, side);
  if (holders.size() != kKept) {
    return Fail(Code::kInternal, "pods with {}: {} processes hold {} of them", handler,
                holders.size(), kKept);
  }
  Held held;
  held.one = PssKib(holders) / kKept;
  held.all = SettledPssKib(lab, side) + PssKib(holders);
  GANTRY_TRY([[maybe_unused]] const double cleared, pods.Do("clear"));
  return held;
}

/// For one more container in a pod of this handler, beyond the workload itself.
Result<double> Executions(Lab& lab, Pods& pods, const std::string& handler,
                          std::vector<std::string>& names) {
  GANTRY_TRY(const e2e::Node* node, lab.Containerd());
  const std::string name = lab.NewId(lab.Stock("runc"));
  GANTRY_TRY([[maybe_unused]] const double kept, pods.Do("keep " + handler + " " + name + " 1"));
  GANTRY_TRY([[maybe_unused]] const double warm, pods.Do("more warm"));
  std::vector<pid_t> roots{ContainerdOf(lab)};
  if (handler == kStock) {
    // The pod's shim is no child of containerd's.
    for (const pid_t shim : Processes(lab, lab.Stock("runc"))) {
      roots.push_back(shim);
    }
  } else {
    roots.push_back(node->Keeper().pid);
    roots.push_back(node->Engine().pid);
  }
  ExecutionCounter counter(roots);
  GANTRY_CHECK_OK(counter.Start());
  GANTRY_TRY([[maybe_unused]] const double more, pods.Do("more counted"));
  GANTRY_TRY(names, counter.Finish());
  GANTRY_TRY([[maybe_unused]] const double cleared, pods.Do("clear"));
  return static_cast<double>(names.size()) - 1;
}

}  // namespace

Status PodRows(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(Pods pods, Pods::Start(lab));
  GANTRY_TRY(Row sandbox,
             Compare(lab, pods, extent,
                     MakeRow("pod-sandbox", "RunPodSandbox, node's network", "ms", 0, 0), "sandbox",
                     "gantry-crun", 1));
  report.Add(std::move(sandbox).RatioAtMost(0.12));
  GANTRY_TRY(Row start, Compare(lab, pods, extent,
                                MakeRow("pod-start",
                                        "RunPodSandbox, CreateContainer, StartContainer, crun "
                                        "against runc",
                                        "ms", 0, 0),
                                "start", "gantry-crun", 1));
  report.Add(std::move(start).RatioAtMost(0.4));
  Extent few = extent;
  few.rounds = std::max(1, extent.rounds / 6);
  GANTRY_TRY(Row batch, Compare(lab, pods, few,
                                MakeRow("pod-batch",
                                        "30 pods with a container each at once, crun against runc",
                                        "ms", 0, 0),
                                "batch", "gantry-crun", kBatch));
  report.Add(std::move(batch).RatioAtMost(0.5));
  return {};
}

Status PodMemoryRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  GANTRY_TRY(Pods pods, Pods::Start(lab));
  GANTRY_TRY(const Held ours, Keep(lab, pods, lab.Gantry("crun"), "gantry-crun"));
  GANTRY_TRY(const Held peer, Keep(lab, pods, lab.Stock("runc"), kStock));
  report.Add(MakeRow("pod-memory", "PSS beside the workload with 50 pods of one idle container",
                     "KiB", ours.all, peer.all)
                 .RatioAtMost(1.0 / 30));
  report.Add(
      MakeRow("pod-holder", "PSS of what holds a pod's namespaces", "KiB", ours.one, peer.one)
          .AtMost(16));
  return {};
}

Status PodExecutionRow(Lab& lab, const Extent& /*extent*/, Report& report) {
  GANTRY_TRY(Pods pods, Pods::Start(lab));
  std::vector<std::string> our_names;
  std::vector<std::string> peer_names;
  GANTRY_TRY(const double ours, Executions(lab, pods, "gantry-runc", our_names));
  GANTRY_TRY(const double peer, Executions(lab, pods, kStock, peer_names));
  report.Add(MakeRow("pod-executions",
                     "programs executed for a further container of a pod beyond the workload, runc",
                     "execve", ours, peer)
                 .AtMost(2));
  report.AddNote(Named("pod-executions, gantry", our_names));
  report.AddNote(Named("pod-executions, stock", peer_names));
  return {};
}

}  // namespace gantry::bench
