// SPDX-License-Identifier: Apache-2.0
//
// Further containers of a pod that runs.
#include "tests/performance/figures.h"
#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_processes.h"
#include "tests/performance/gvisor_rows.h"

namespace gantry::bench {
namespace {

struct Request {
  bool is_image = false;
  /// Its gofer gets time to start before the container does.
  bool is_patient = false;
};

Result<Phases> OneContainer(GvisorLab& lab, NewContainer make, const std::string& pod,
                            const Request& wanted) {
  // gantry's only: the other side has no gofer yet.
  const auto gofers = [&] { return Gofers(Processes(lab.lab(), lab.side())); };
  constexpr size_t kGofers = 2;
  Phases phases;
  const auto container = make(lab);
  GANTRY_CHECK_OK(container->Prepare(pod, wanted.is_image));
  GANTRY_CHECK_OK(container->Create(phases));
  if (wanted.is_patient && make == NewGantryContainer && !AwaitIdle(gofers, kGofers)) {
    return Fail(Code::kDeadlineExceeded, "wait for the gofer of '{}': it is busy", container->id());
  }
  GANTRY_CHECK_OK(container->Start(phases));
  GANTRY_CHECK_OK(container->End());
  return phases;
}

Result<Pair> Containers(GvisorLab& lab, const Extent& extent, const Request& wanted) {
  GvisorPods pods(lab);
  GANTRY_CHECK_OK(pods.Run());
  GANTRY_TRY(Pair pair,
             Alternate(
                 extent.warm(), extent.rounds,
                 [&] { return OneContainer(lab, NewGantryContainer, pods.ours->id(), wanted); },
                 [&] { return OneContainer(lab, NewRunscContainer, pods.peer->id(), wanted); }));
  GANTRY_CHECK_OK(pods.End());
  return pair;
}

Row TimesRow(const std::string& id, const std::string& what, double ours, double peer) {
  return {
      .id = id, .what = what, .unit = "ms", .ours = ours, .peer = peer, .target = "", .met = {}};
}

}  // namespace

Status GvisorContainerRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                          Report& report) {
  GANTRY_TRY(const Pair pair, Containers(lab, extent, {}));
  report.Add(
      GvisorRow(release,
                TimesRow("gvisor-container",
                         "Create and Start of a further container of a pod; runsc create, start",
                         pair.ours.MedianTotal(), pair.peer.MedianTotal()),
                0.6));
  report.AddPhases(release.RowId("gvisor-container"), pair);
  return {};
}

Status GvisorStartRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  GANTRY_TRY(const Pair pair, Containers(lab, extent, {.is_patient = true}));
  report.Add(GvisorRow(release,
                       TimesRow("gvisor-start",
                                "Start alone, of a container whose gofer was started by Create; "
                                "runsc start",
                                pair.ours.MedianOf("Start"), pair.peer.MedianOf("Start")),
                       0.1));
  return {};
}

Status GvisorErofsRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                      Report& report) {
  GANTRY_TRY(const Pair pair, Containers(lab, extent, {.is_image = true}));
  report.Add(GvisorRow(release,
                       TimesRow("gvisor-container-erofs",
                                "Create and Start of one whose root is an EROFS image, without a "
                                "gofer on either side; runsc create, start",
                                pair.ours.MedianTotal(), pair.peer.MedianTotal()),
                       1.0 / 25));
  report.AddPhases(release.RowId("gvisor-container-erofs"), pair);
  return {};
}

}  // namespace gantry::bench
