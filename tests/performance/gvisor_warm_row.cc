// SPDX-License-Identifier: Apache-2.0
//
// Pods that get a sandbox which was booted before they were asked for.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gantry/protowire.h>

#include "tests/performance/figures.h"
#include "tests/performance/gvisor_container.h"
#include "tests/performance/gvisor_processes.h"
#include "tests/performance/gvisor_rows.h"
#include "tests/performance/instance.h"

namespace gantry::bench {
namespace {

constexpr std::string_view kSandboxService = "containerd.runtime.sandbox.v1.Sandbox";

/// What CRI sends of a pod, as an Any: its hostname, which each has.
std::string PodConfig(const std::string& hostname) {
  ProtoWriter config;
  config.Text(2, hostname);
  ProtoWriter any;
  any.Text(1, "runtime.v1.PodSandboxConfig");
  any.Bytes(2, config.str());
  return any.Take();
}

/// A pod without a pause container, as containerd's Sandbox API makes it.
class PauselessPod {
 public:
  explicit PauselessPod(GvisorLab& lab)
      : instance_(lab.lab(), lab.side()), bundle_(lab.lab().bundles() + "/" + instance_.id()) {}

  PauselessPod(const PauselessPod&) = delete;
  PauselessPod& operator=(const PauselessPod&) = delete;

  ~PauselessPod() {
    IgnoreError(End(), "it may have ended");
    std::error_code error;
    std::filesystem::remove_all(bundle_, error);
  }

  Status Announce() {
    std::filesystem::create_directories(bundle_ + "/rootfs");
    instance_.PrepareIn(bundle_);
    GANTRY_CHECK_OK(instance_.StartShim());
    return {};
  }

  /// Its sentry.
  Result<pid_t> CreateAndStart(Phases& phases) {
    const auto begin = Clock::now();
    GANTRY_CHECK_OK(instance_.Connect());
    GANTRY_CHECK_OK(Call("CreateSandbox"));
    phases.Add("Create", MillisecondsSince(begin));
    const auto middle = Clock::now();
    GANTRY_TRY(const std::string answer, Call("StartSandbox"));
    phases.Add("Start", MillisecondsSince(middle));
    started_ = true;
    pid_t pid = 0;
    ProtoReader in(answer);
    while (in.Next()) {
      pid = in.field() == 1 ? static_cast<pid_t>(in.number()) : pid;
    }
    return pid;
  }

  Status End() {
    if (!started_) {
      return {};
    }
    started_ = false;
    GANTRY_CHECK_OK(Call("StopSandbox"));
    GANTRY_CHECK_OK(Call("ShutdownSandbox"));
    GANTRY_CHECK_OK(instance_.DeleteShim());
    return {};
  }

 private:
  Result<std::string> Call(const std::string& method) {
    ProtoWriter request;
    request.Text(1, instance_.id());
    if (method == "CreateSandbox") {
      request.Text(2, bundle_);
      request.Bytes(4, PodConfig("web-0"));
    }
    return instance_.Call(method, request.Take(), kSandboxService);
  }

  Instance instance_;
  const std::string bundle_;
  bool started_ = false;
};

/// All sandboxes that are to be there are.
bool AwaitPool(GvisorLab& lab) {
  return AwaitIdle([&] { return Sentries(Processes(lab.lab(), lab.side())); }, kWarmSandboxes);
}

/// In one of the sandboxes that were there, if there were any.
Result<Phases> OnePod(GvisorLab& lab) {
  const std::vector<pid_t> ready = Sentries(Processes(lab.lab(), lab.side()));
  Phases phases;
  PauselessPod pod(lab);
  GANTRY_CHECK_OK(pod.Announce());
  GANTRY_TRY(const pid_t sentry, pod.CreateAndStart(phases));
  if (!ready.empty() && !std::ranges::contains(ready, sentry)) {
    return Fail(Code::kInternal, "start a pod: in sandbox {}, which was not booted ahead", sentry);
  }
  GANTRY_CHECK_OK(pod.End());
  if (!ready.empty() && !AwaitPool(lab)) {
    return Fail(Code::kDeadlineExceeded, "wait for {} sandboxes that are booted ahead",
                kWarmSandboxes);
  }
  return phases;
}

Result<Phases> OnePeer(GvisorLab& lab) {
  Phases phases;
  const auto pod = NewRunscContainer(lab);
  GANTRY_CHECK_OK(pod->Prepare("", false));
  GANTRY_CHECK_OK(pod->Create(phases));
  GANTRY_CHECK_OK(pod->Start(phases));
  GANTRY_CHECK_OK(pod->End());
  return phases;
}

}  // namespace

Status GvisorWarmRow(GvisorLab& lab, const GvisorRelease& release, const Extent& extent,
                     Report& report) {
  // The first one starts the engine.
  GANTRY_CHECK_OK(OnePod(lab));
  if (!AwaitPool(lab)) {
    report.AddNote(release.RowId("gvisor-pod-warm") +
                   ": skipped: this gantry boots no sandboxes ahead");
    return {};
  }
  GANTRY_TRY(const Pair pair, Alternate(
                                  extent.warm(), extent.rounds, [&] { return OnePod(lab); },
                                  [&] { return OnePeer(lab); }));
  report.Add(GvisorRow(release,
                       {.id = "gvisor-pod-warm",
                        .what = "CreateSandbox and StartSandbox of a pod, pre-booted; runsc "
                                "create, start",
                        .unit = "ms",
                        .ours = pair.ours.MedianTotal(),
                        .peer = pair.peer.MedianTotal(),
                        .target = "",
                        .met = {}},
                       0.25));
  report.AddPhases(release.RowId("gvisor-pod-warm"), pair);
  return {};
}

}  // namespace gantry::bench
