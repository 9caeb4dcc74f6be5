// SPDX-License-Identifier: Apache-2.0
//
// What being watched costs: scrapes of the metrics, without and with rows for each sandbox.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/harness/host.h"
#include "tests/performance/disturbance.h"
#include "tests/performance/figures.h"
#include "tests/performance/instance.h"
#include "tests/performance/rows.h"

namespace gantry::bench {
namespace {

constexpr size_t kMany = 500;
constexpr size_t kMost = 1000;
/// Prometheus' usual interval is longer.
constexpr double kIntervalMs = 5000;
/// Longer than a text is given again.
constexpr std::chrono::milliseconds kBetween{150};
/// After a container has been made, or an engine.
constexpr std::chrono::seconds kSettles{2};
constexpr double kCostLimit = 0.1;
constexpr double kScrapeLimit = 20;

std::string Address(const Lab& lab) { return lab.root() + "/metrics.sock"; }

/// Gantry is started anew, with and without metrics.
class Watched {
 public:
  explicit Watched(Lab& lab) : lab_(lab), config_(e2e::ReadText(File())) {
    Configure("false");
    lab_.EndGantry(lab_.Gantry("crun"));
  }

  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  ~Watched() {
    e2e::WriteText(File(), config_);
    lab_.EndGantry(lab_.Gantry("crun"));
  }

  /// By another engine.
  Status WithSandboxes() const {
    Configure("true");
    GANTRY_CHECK_OK(Disturb(lab_, Disturbance::kCrash));
    std::this_thread::sleep_for(kSettles);
    return {};
  }

 private:
  std::string File() const { return lab_.root() + "/gantry.yaml"; }

  void Configure(const std::string& sandboxes) const {
    e2e::WriteText(File(), config_ + "metrics:\n  address: " + Address(lab_) +
                               "\n  sandboxes: " + sandboxes + "\n");
  }

  Lab& lab_;
  const std::string config_;
};

Status GrowTo(Lab& lab, std::vector<std::unique_ptr<Instance>>& instances, size_t count) {
  while (instances.size() < count) {
    instances.push_back(std::make_unique<Instance>(lab, lab.Gantry("crun")));
    GANTRY_CHECK_OK(instances.back()->Run({"sleep", "100000"}));
  }
  std::this_thread::sleep_for(kSettles);
  return {};
}

Result<std::string> Scrape(const Lab& lab) {
  GANTRY_TRY(const UniqueFd socket, ConnectUnix(Address(lab)));
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
  if (fcntl(socket.get(), F_SETFL, 0) != 0 ||
      write(socket.get(), request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
    return FailErrno(errno, "ask for the metrics");
  }
  std::string text;
  std::array<char, 65536> part{};
  for (ssize_t bytes = 1; bytes > 0;) {
    bytes = read(socket.get(), part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  }
  if (!text.starts_with("HTTP/1.1 200 ") || !text.contains("\ngantry_containers{")) {
    return Fail(Code::kInternal, "ask for the metrics: '{}'", text.substr(0, 200));
  }
  return text;
}

struct Cost {
  std::vector<double> times;
  double cpu_ms = 0;
  size_t bytes = 0;
};

Result<Cost> CostOf(const Lab& lab, int scrapes) {
  Cost cost;
  const std::vector<pid_t> pids = Processes(lab, lab.Gantry("crun"));
  // The first has all cgroups to be read; each after it some.
  GANTRY_TRY(std::string text, Scrape(lab));
  const double before = CpuMilliseconds(pids);
  for (int i = 0; i < scrapes; ++i) {
    std::this_thread::sleep_for(kBetween);
    const auto begin = Clock::now();
    GANTRY_TRY(text, Scrape(lab));
    cost.times.push_back(MillisecondsSince(begin));
  }
  cost.cpu_ms = (CpuMilliseconds(pids) - before) / scrapes;
  cost.bytes = text.size();
  return cost;
}

}  // namespace

Status MetricsRows(Lab& lab, const Extent& extent, Report& report) {
  const Watched watched(lab);
  std::vector<std::unique_ptr<Instance>> instances;
  GANTRY_CHECK_OK(GrowTo(lab, instances, kMany));
  GANTRY_TRY(const Cost few, CostOf(lab, extent.rounds));
  GANTRY_CHECK_OK(watched.WithSandboxes());
  GANTRY_TRY(const Cost many, CostOf(lab, extent.rounds));
  GANTRY_CHECK_OK(GrowTo(lab, instances, kMost));
  GANTRY_TRY(const Cost most, CostOf(lab, extent.rounds));
  for (const auto& instance : instances) {
    GANTRY_CHECK_OK(instance->End());
  }
  report.Add(Row{
      .id = "metrics-cost",
      .what = "processor time of gantry for a scrape each 5 s, 500 sandboxes",
      .unit = "%",
      .ours = few.cpu_ms / kIntervalMs * 100,
      .peer = {},
      .target = "",
      .met = {}}.AtMost(kCostLimit));
  report.AddPart("metrics-cost", "with rows for each sandbox", many.cpu_ms / kIntervalMs * 100, 0);
  report.Add(Row{
      .id = "metrics-scrape",
      .what = "one scrape of 1,000 sandboxes with rows of their own",
      .unit = "ms",
      .ours = Median(most.times),
      .peer = {},
      .target = "",
      .met = {}}.AtMost(kScrapeLimit));
  report.AddPart("metrics-scrape", "processor time, in ms", most.cpu_ms, 0);
  report.AddPart("metrics-scrape", "KiB of text", static_cast<double>(most.bytes) / 1024, 0);
  return {};
}

}  // namespace gantry::bench
