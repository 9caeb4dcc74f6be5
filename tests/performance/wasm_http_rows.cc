// SPDX-License-Identifier: Apache-2.0
//
// Requests a second through a component that is a proxy of wasi:http, each with an instance of
// its own. There is no peer: WasmEdge and crun have none.
#include <vector>

#include "tests/harness/host.h"
#include "tests/performance/http_clients.h"
#include "tests/performance/instance.h"
#include "tests/performance/wasm_lab.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

constexpr size_t kConnections = 16;
constexpr int kRequestsInATurn = 2000;
constexpr uint16_t kPort = 8080;
/// What the guest answers to the first request that an instance has.
constexpr const char* kOwnInstance = "requests: 1\n";

Result<pid_t> ProcessOf(const Lab& lab, const Instance& instance) {
  const auto found = e2e::ProcessesInCgroup("/" + lab.ns() + "/" + instance.id());
  if (found.size() != 1) {
    return Fail(Code::kInternal, "look at the container '{}': it has {} processes", instance.id(),
                found.size());
  }
  return found.front().pid;
}

Row HttpRow(const std::string& id, const std::string& what, const std::string& unit, double ours) {
  return {.id = id, .what = what, .unit = unit, .ours = ours, .peer = {}, .target = "", .met = {}};
}

}  // namespace

Status WasmHttpRows(Lab& lab, const Extent& extent, Report& report) {
  Instance instance(lab, WasmSide(lab));
  GANTRY_CHECK_OK(instance.Run({"/proxy.wasm"}));
  GANTRY_TRY(const pid_t pid, ProcessOf(lab, instance));
  GANTRY_TRY(Callers clients, ConnectHttp(pid, kPort, kConnections, kOwnInstance));
  std::vector<double> rates;
  std::vector<double> times;
  for (int round = -1; round < extent.rounds; ++round) {
    const auto begin = Clock::now();
    GANTRY_TRY(const auto turn, clients.Turn(kRequestsInATurn));
    const double took = MillisecondsSince(begin);
    if (round >= 0) {
      rates.push_back(kRequestsInATurn / took * 1000);
      times.insert(times.end(), turn.begin(), turn.end());
    }
  }
  GANTRY_CHECK_OK(instance.End());
  report.Add(HttpRow("wasm-http",
                     "requests through a proxy component, an instance for each, 16 connections",
                     "1/s", Median(rates)));
  constexpr double kTail = 0.99;
  report.Add(HttpRow("wasm-http-p99", "p99 of their times", "us", Percentile(times, kTail)));
  return {};
}

}  // namespace gantry::bench
