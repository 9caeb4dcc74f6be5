// SPDX-License-Identifier: Apache-2.0
//
// What a call into a backend costs: Platform of a pod, which is one on a worker,
// less PingSandbox, which is answered without.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include <gantry/protowire.h>

#include "core/rpc/blocking_client.h"
#include "tests/performance/pods.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr const char* kService = "containerd.runtime.sandbox.v1.Sandbox";
/// In each round, in turns: so both see the machine in the same moods.
constexpr int kCalls = 300;
constexpr std::chrono::seconds kLimit{10};

struct Pod {
  std::string id;
  std::string socket;
};

/// The only one that there is.
Result<Pod> FindPod(const Lab& lab) {
  const std::string folder = lab.root() + "/state/io.containerd.sandbox.controller.v1.shim/k8s.io";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::ifstream file(entry.path() / "bootstrap.json");
    const auto bootstrap = nlohmann::json::parse(file, nullptr, false);
    const std::string address =
        bootstrap.is_object() ? bootstrap.value("address", std::string()) : std::string();
    if (address.starts_with("unix://")) {
      return Pod{entry.path().filename(), address.substr(7)};
    }
  }
  return Fail(Code::kNotFound, "find the pod's socket below '{}'", folder);
}

Result<Phases> Call(rpc::BlockingClient& client, const Pod& pod, const char* method) {
  ProtoWriter request;
  request.Bytes(1, pod.id);
  const auto begin = Clock::now();
  GANTRY_TRY([[maybe_unused]] const std::string answer,
             client.Call(kService, method, request.str(), kLimit));
  Phases phases;
  phases.Add(method, MillisecondsSince(begin) * 1000);
  return phases;
}

}  // namespace

Status PluginCallRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(Pods pods, Pods::Start(lab));
  GANTRY_TRY([[maybe_unused]] const double kept, pods.Do("keep gantry-crun plugin-call 1"));
  GANTRY_TRY(const Pod pod, FindPod(lab));
  GANTRY_TRY(rpc::BlockingClient client, rpc::BlockingClient::Connect(pod.socket));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 kCalls, kCalls * extent.rounds, [&] { return Call(client, pod, "Platform"); },
                 [&] { return Call(client, pod, "PingSandbox"); }));
  GANTRY_TRY([[maybe_unused]] const double cleared, pods.Do("clear"));
  Row row;
  row.id = "plugin-call";
  row.what = "a call that the backend answers, less one that it does not (as peer)";
  row.unit = "us";
  row.peer = pair.peer.MedianTotal();
  row.ours = pair.ours.MedianTotal() - pair.peer.MedianTotal();
  report.Add(std::move(row));
  return {};
}

}  // namespace gantry::bench
