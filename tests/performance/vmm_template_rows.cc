// SPDX-License-Identifier: Apache-2.0
//
// Pods of a handler with `template: 1`: one that takes the machine that waits, and at once after it
// one for which a machine is restored. A pod that is booted, of a handler without, is measured in
// the same engine and in turns, while a machine waits and none is being made.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/host.h"
#include "tests/harness/program.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

/// A round takes three machines and the time in which one is made ready.
constexpr int kRounds = 5;

/// gantry with the handler that has a template, as long as this is there: a machine that waits, or
/// is being made, is not to be beside other rows. Owner: of the lab's gantry.
class TemplateGantry {
 public:
  explicit TemplateGantry(Lab& lab) : lab_(lab), before_(e2e::ReadText(File())) {
    const std::string handlers = "handlers:\n";
    std::string text = before_;
    const size_t at = text.find("  vmm:\n");
    const size_t end = text.find("backends:\n", at);
    std::string handler = text.substr(at, end - at);
    handler.insert(handler.find("vmm"), "ready-");
    text.insert(text.find(handlers) + handlers.size(), handler + "      template: 1\n");
    e2e::WriteText(File(), text);
    lab_.EndGantry(VmmSide(lab_));
  }

  TemplateGantry(const TemplateGantry&) = delete;
  TemplateGantry& operator=(const TemplateGantry&) = delete;

  ~TemplateGantry() {
    lab_.EndGantry(VmmSide(lab_));
    e2e::WriteText(File(), before_);
    // The next engine that loads the backend removes what there is of templates.
    Instance last(lab_, VmmSide(lab_));
    IgnoreError(last.Run({"true"}), "the rows are measured");
    IgnoreError(last.End(), "the run's end looks again");
  }

  Side side() const {
    Side side = VmmSide(lab_);
    side.shim = lab_.root() + "/bin/containerd-shim-gantry-ready-vmm-v1";
    side.runtime = "io.containerd.gantry-ready-vmm.v1";
    return side;
  }

  /// Of `gantryctl status`; none: it says nothing of the kind.
  std::optional<long> Count(const std::string& name) const {
    const e2e::Output status = e2e::RunProgram(
        {"env", "GANTRY_RUN_DIR=" + lab_.run_dir(), lab_.programs() + "/gantryctl", "status"});
    const size_t at = status.out.find(name + " ");
    return at == std::string::npos
               ? std::nullopt
               : std::optional(std::atol(status.out.c_str() + at + name.size() + 1));
  }

  Status AwaitReady() const {
    return e2e::Eventually([&] { return Count("warm_ready") == 1 && Count("warm_booting") == 0; },
                           e2e::kLong)
               ? Status()
               : Fail(Code::kDeadlineExceeded, "wait for a machine that is ready: there is none");
  }

 private:
  std::string File() const { return lab_.root() + "/gantry.yaml"; }

  Lab& lab_;
  const std::string before_;
};

/// Create and Start. Units: ms.
Result<double> StartPod(Instance& pod) {
  GANTRY_CHECK_OK(pod.Prepare({"sleep", "1000"}));
  GANTRY_CHECK_OK(pod.StartShim());
  GANTRY_CHECK_OK(pod.Connect());
  const auto begin = Clock::now();
  GANTRY_CHECK_OK(pod.Create());
  GANTRY_CHECK_OK(pod.Start());
  return MillisecondsSince(begin);
}

/// VMMs whose memory came from a snapshot.
size_t Restored(const Lab& lab) {
  return e2e::Processes([&](const e2e::HostProcess& process) {
           return process.name.contains("qemu") && process.command.contains("-incoming") &&
                  process.command.contains(lab.root());
         })
      .size();
}

Result<Phases> OursOfTemplate(Lab& lab, const TemplateGantry& gantry) {
  GANTRY_CHECK_OK(gantry.AwaitReady());
  const long taken = gantry.Count("warm_taken").value_or(0);
  Phases phases;
  Instance ready(lab, gantry.side());
  GANTRY_TRY(const double resumed, StartPod(ready));
  Instance other(lab, gantry.side());
  GANTRY_TRY(const double restored, StartPod(other));
  if (const long now = gantry.Count("warm_taken").value_or(0); now != taken + 1) {
    return Fail(Code::kInternal, "start two pods: {} of them took a machine that waited, not one",
                now - taken);
  }
  if (Restored(lab) < 2) {
    return Fail(Code::kInternal, "start a pod of a template: its machine was booted");
  }
  phases.Add("ready", resumed);
  phases.Add("template", restored);
  GANTRY_CHECK_OK(other.End());
  GANTRY_CHECK_OK(ready.End());
  return phases;
}

Result<Phases> BootedPod(Lab& lab, const TemplateGantry& gantry) {
  GANTRY_CHECK_OK(gantry.AwaitReady());
  Instance pod(lab, VmmSide(lab));
  GANTRY_TRY(const double booted, StartPod(pod));
  GANTRY_CHECK_OK(pod.End());
  Phases phases;
  phases.Add("boot", booted);
  return phases;
}

Row RowOf(const std::string& phase, const std::string& what, const Pair& pair, double limit) {
  return Row{.id = "vmm-" + phase,
             .what = "Create and Start of a pod's first container, " + what + "; booted",
             .unit = "ms",
             .ours = pair.ours.MedianOf(phase),
             .peer = pair.peer.MedianOf("boot"),
             .target = "",
             .met = {}}
      .RatioAtMost(limit);
}

}  // namespace

Status VmmTemplateRows(Lab& lab, const Extent& extent, Report& report) {
  const TemplateGantry gantry(lab);
  // The first one starts the engine, which makes the template then.
  Instance first(lab, gantry.side());
  GANTRY_CHECK_OK(first.Run({"sleep", "1000"}));
  GANTRY_CHECK_OK(first.End());
  GANTRY_TRY(const Pair pair,
             Alternate(
                 0, std::min(extent.rounds, kRounds), [&] { return OursOfTemplate(lab, gantry); },
                 [&] { return BootedPod(lab, gantry); }));
  report.Add(RowOf("template", "its machine restored from a snapshot", pair, 0.22));
  report.Add(RowOf("ready", "in a machine that waited", pair, 0.1));
  return {};
}

}  // namespace gantry::bench
