// SPDX-License-Identifier: Apache-2.0
//
// Processes that pods of gVisor keep and programs that are executed for them. On runsc's side
// each container has the `runsc wait` that its own shim keeps until the container ends.
#include "tests/performance/execution_counter.h"
#include "tests/performance/figures.h"
#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_processes.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

/// A pod of each side with a further container.
struct Crowd {
  explicit Crowd(GvisorLab& lab)
      : pods(lab), ours(NewGantryContainer(lab)), peer(NewRunscContainer(lab)) {}

  Status Run(GvisorLab& lab) {
    GANTRY_CHECK_OK(pods.Run());
    GANTRY_CHECK_OK(ours->Run(pods.ours->id()));
    GANTRY_CHECK_OK(peer->Run(pods.peer->id()));
    for (const std::string& id : {pods.peer->id(), peer->id()}) {
      GANTRY_CHECK_OK(lab.runsc().Leave({"wait", id}));
    }
    return {};
  }

  Status End() {
    GANTRY_CHECK_OK(ours->End());
    GANTRY_CHECK_OK(peer->End());
    return pods.End();
  }

  GvisorPods pods;
  std::unique_ptr<GvisorContainer> ours;
  std::unique_ptr<GvisorContainer> peer;
};

Row CountRow(const GvisorRelease& release, const std::string& id, const std::string& what,
             const std::string& unit, size_t ours, size_t peer, double limit) {
  Row row{.id = release.RowId(id),
          .what = what,
          .unit = unit,
          .ours = static_cast<double>(ours),
          .peer = static_cast<double>(peer),
          .target = "",
          .met = {}};
  return release.has_targets ? std::move(row).AtMost(limit) : row;
}

/// What these and their descendants execute for one more container of a pod.
Result<std::vector<std::string>> Executions(GvisorLab& lab, const std::vector<pid_t>& roots,
                                            NewContainer make, const std::string& pod,
                                            bool is_image) {
  const auto container = make(lab);
  GANTRY_CHECK_OK(container->Prepare(pod, is_image));
  Phases untimed;
  ExecutionCounter counter(roots);
  GANTRY_CHECK_OK(counter.Start());
  GANTRY_CHECK_OK(container->Create(untimed));
  GANTRY_CHECK_OK(container->Start(untimed));
  if (make == NewRunscContainer) {
    GANTRY_CHECK_OK(lab.runsc().Leave({"wait", container->id()}));
  }
  GANTRY_TRY(std::vector<std::string> names, counter.Finish());
  GANTRY_CHECK_OK(container->End());
  return names;
}

Status ExecutionRow(GvisorLab& lab, const GvisorRelease& release, const GvisorPods& pods,
                    bool is_image, Report& report) {
  const std::string id = is_image ? "gvisor-executions-erofs" : "gvisor-executions";
  GANTRY_TRY(const auto ours, Executions(lab, Processes(lab.lab(), lab.side()), NewGantryContainer,
                                         pods.ours->id(), is_image));
  GANTRY_TRY(const auto peer,
             Executions(lab, {lab.runsc().pid()}, NewRunscContainer, pods.peer->id(), is_image));
  const std::string what =
      is_image ? "the same for one whose root is an EROFS image"
               : "programs executed for a further container of a pod, its gofer among them";
  report.Add(CountRow(release, id, what, "execve", ours.size(), peer.size(), is_image ? 0 : 1));
  report.AddNote(Named(release.RowId(id) + ", gantry", ours));
  report.AddNote(Named(release.RowId(id) + ", runsc", peer));
  return {};
}

}  // namespace

Status GvisorProcessRows(GvisorLab& lab, const GvisorRelease& release, const Extent& /*extent*/,
                         Report& report) {
  Crowd crowd(lab);
  GANTRY_CHECK_OK(crowd.Run(lab));
  report.Add(CountRow(release, "gvisor-processes",
                      "processes of a pod of two containers beside sentry and gofers; runsc wait",
                      "processes", BesideSentries(Processes(lab.lab(), lab.side())).size(),
                      BesideSentries({lab.runsc().pid()}).size(), 0));
  GANTRY_CHECK_OK(ExecutionRow(lab, release, crowd.pods, false, report));
  GANTRY_CHECK_OK(ExecutionRow(lab, release, crowd.pods, true, report));
  return crowd.End();
}

}  // namespace gantry::bench
