// SPDX-License-Identifier: Apache-2.0
//
// bench [ROW...]: measures gantry against the containerd shim that comes with
// the same containerd, prints a table and writes bench.json into the folder
// that GANTRY_BENCH_OUT names (the build's parent). GANTRY_BENCH_ROUNDS says how
// often what is repeated is repeated (30), GANTRY_BENCH_LIVES how many lives
// churn-growth has (5000). The settings of the e2e tests apply.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/performance/guest_tools.h"
#include "tests/performance/gvisor_rows.h"
#include "tests/performance/rows.h"
#include "tests/performance/vmm_rows.h"
#include "tests/performance/wasm_rows.h"

namespace gantry::bench {
namespace {

struct Group {
  std::vector<std::string> ids;
  std::function<Status(Lab&, const Extent&, Report&)> measure;
};

void AddGvisor(std::vector<Group>& groups) {
  for (const GvisorRelease& release : GvisorReleases()) {
    for (const GvisorGroup& one : GvisorGroups()) {
      std::vector<std::string> ids;
      for (const std::string& row : one.rows) {
        ids.push_back(release.RowId(row));
      }
      groups.push_back({std::move(ids), [&](Lab& lab, const Extent& extent, Report& report) {
                          return MeasureGvisor(lab, one, release, extent, report);
                        }});
    }
  }
}

void AddWasm(std::vector<Group>& groups) {
  for (const WasmGroup& one : WasmGroups()) {
    groups.push_back({one.rows, [&one](Lab& lab, const Extent& extent, Report& report) {
                        return MeasureWasm(lab, one, extent, report);
                      }});
  }
}

void AddVmm(std::vector<Group>& groups) {
  for (const VmmGroup& one : VmmGroups()) {
    groups.push_back({one.rows, [&one](Lab& lab, const Extent& extent, Report& report) {
                        return MeasureVmm(lab, one, extent, report);
                      }});
  }
}

// The memory rows want a gantry that has done nothing yet.
std::vector<Group> MakeGroups() {
  std::vector<Group> groups{
      {{"memory-1", "memory-10", "memory-100", "memory-slope", "memory-back"}, MemoryRows},
      {{"executions"}, ExecutionRows},
      {{"run-runc"}, RunRuncRow},
      {{"run-crun"}, RunCrunRow},
      {{"shim-start"}, ShimStartRow},
      {{"life-runc"}, LifeRuncRow},
      {{"life-crun"}, LifeCrunRow},
      {{"exec-runc"}, ExecRuncRow},
      {{"exec-crun"}, ExecCrunRow},
      {{"stdout", "stdout-cpu"}, StdoutRows},
      {{"stdout-streaming"}, StdoutStreamingRow},
      {{"exec-stdout", "exec-stdout-cpu"}, ExecStdoutRows},
      {{"exec-tty", "exec-tty-cpu"}, ExecTtyRows},
      {{"update-systemd"}, UpdateSystemdRow},
      {{"state-1", "state-8", "state-64"}, StateRows},
      {{"gap-crash-1", "gap-crash-100", "gap-crash-500", "gap-upgrade-1", "gap-upgrade-100",
        "gap-upgrade-500", "gap-keeper-1", "gap-keeper-100", "gap-keeper-500", "gap-exec-crash-100",
        "gap-exec-upgrade-100", "gap-exec-keeper-100", "gap-stream-crash-100",
        "gap-stream-upgrade-100", "gap-stream-keeper-100", "recovery-slope"},
       GapRows},
      {{"metrics-cost", "metrics-scrape"}, MetricsRows},
      {{"trace-cost"}, TraceRow},
      {{"memory-grpc"}, GrpcMemoryRow},
      {{"churn-growth"}, ChurnRow},
      {{"pod-sandbox", "pod-start", "pod-batch"}, PodRows},
      {{"pod-memory", "pod-holder"}, PodMemoryRows},
      {{"pod-executions"}, PodExecutionRow},
      {{"pod-controller"}, PodControllerRow},
      {{"plugin-call"}, PluginCallRow},
  };
  AddGvisor(groups);
  AddWasm(groups);
  AddVmm(groups);
  return groups;
}

const std::vector<Group>& Groups() {
  static const std::vector<Group> groups = MakeGroups();
  return groups;
}

std::string Env(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value != nullptr && *value != '\0' ? value : otherwise;
}

bool Wanted(const Group& group, const std::vector<std::string>& rows) {
  return rows.empty() || std::ranges::any_of(group.ids, [&](const std::string& id) {
           return std::ranges::contains(rows, id);
         });
}

/// A row that no group has; empty = none.
std::string UnknownRow(const std::vector<std::string>& rows) {
  for (const std::string& row : rows) {
    if (std::ranges::none_of(
            Groups(), [&](const Group& group) { return std::ranges::contains(group.ids, row); })) {
      return row;
    }
  }
  return "";
}

Status Measure(const e2e::Settings& settings, const std::vector<std::string>& rows,
               const Extent& extent, Report& report) {
  Lab lab(settings);
  GANTRY_CHECK_OK(lab.SetUp());
  for (const Group& group : Groups()) {
    if (!Wanted(group, rows)) {
      continue;
    }
    std::printf("  ... %s\n", group.ids.front().c_str());
    std::fflush(stdout);
    if (Status status = group.measure(lab, extent, report); !status) {
      report.AddFailure(group.ids.front(), status.error());
    }
  }
  return {};
}

int Complain(const std::string& text) {
  std::fprintf(stderr, "bench: %s\n", text.c_str());
  return EXIT_FAILURE;
}

int Main(const std::vector<std::string>& rows) {
  if (const std::string row = UnknownRow(rows); !row.empty()) {
    return Complain("there is no row '" + row + "'");
  }
  const e2e::Settings settings = e2e::ReadSettings();
  if (!settings.unavailable.empty()) {
    e2e::CleanUp(settings);
    return Complain(settings.unavailable);
  }
  Extent extent;
  extent.rounds = std::max(1, std::atoi(Env("GANTRY_BENCH_ROUNDS", "30").c_str()));
  Report report;
  if (const Status status = Measure(settings, rows, extent, report); !status) {
    return Complain(status.error().message);
  }
  std::printf("\n%s", report.Table().c_str());
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string out = Env("GANTRY_BENCH_OUT", here.parent_path().parent_path());
  if (const Status status = report.Write(out); !status) {
    return Complain(status.error().message);
  }
  return report.failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace
}  // namespace gantry::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto status = gantry::bench::GuestTool(words)) {
    return *status;
  }
  if (words.size() == 2 && words[0] == "--write") {
    return gantry::bench::WriteBytes(std::strtoull(words[1].c_str(), nullptr, 10));
  }
  if (words.size() == 2 && words[0] == "--runsc-host") {
    return gantry::bench::ServeRunsc(words[1]);
  }
  if (words.size() == 1 && words[0] == "--tick") {
    return gantry::bench::WriteTicks();
  }
  return gantry::bench::Main(words);
}
