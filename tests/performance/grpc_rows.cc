// SPDX-License-Identifier: Apache-2.0
//
// What the gRPC server costs a node, and pods that containerd makes by it.
#include <optional>
#include <string>

#include "tests/performance/figures.h"
#include "tests/performance/pods.h"
#include "tests/performance/rows.h"
#include "tests/performance/with_grpc.h"

namespace gantry::bench {
namespace {

constexpr double kMemoryLimitKib = 6 * 1024;
constexpr double kPodRatio = 0.1;
/// Of the lab's containerd: pods of gantry's with crun by its controller.
constexpr const char* kController = "gantry-controller-crun";
constexpr const char* kStock = "stock";

/// With one idle container.
Result<double> Without(Lab& lab) {
  lab.EndGantry(lab.Gantry("crun"));
  Instance instance(lab, lab.Gantry("crun"));
  GANTRY_CHECK_OK(instance.Run({"sleep", "100000"}));
  const double kib = SettledPssKib(lab, lab.Gantry("crun"));
  GANTRY_CHECK_OK(instance.End());
  return kib;
}

Result<double> With(Lab& lab) {
  WithGrpc grpc(lab);
  GANTRY_CHECK_OK(grpc.Start());
  return SettledPssKib(lab, lab.Gantry("crun"));
}

}  // namespace

Status GrpcMemoryRow(Lab& lab, const Extent& /*extent*/, Report& report) {
  GANTRY_TRY(const double without, Without(lab));
  GANTRY_TRY(const double with, With(lab));
  report.Add(Row{
      .id = "memory-grpc",
      .what = "PSS that gantry-grpc adds, with 1 idle container",
      .unit = "KiB",
      .ours = with - without,
      .peer = {},
      .target = "",
      .met = {}}.AtMost(kMemoryLimitKib));
  report.AddPart("memory-grpc", "without it", without, 0);
  return {};
}

Status PodControllerRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY([[maybe_unused]] const e2e::Node* node, lab.Containerd());
  WithGrpc grpc(lab);
  GANTRY_CHECK_OK(grpc.Start());
  GANTRY_TRY(Pods pods, Pods::Start(lab));
  const auto measure = [&](const char* handler) {
    return [&lab, &pods, handler] { return pods.Timed(lab, "sandbox", handler, "1"); };
  };
  GANTRY_TRY(const Pair pair,
             Alternate(extent.warm(), extent.rounds, measure(kController), measure(kStock)));
  report.Add(Row{
      .id = "pod-controller",
      .what = "RunPodSandbox by the sandbox controller, node's network",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(kPodRatio));
  return {};
}

}  // namespace gantry::bench
