// SPDX-License-Identifier: Apache-2.0
//
// The rows of the benchmark, in groups that are measured together. Each group
// adds its rows to the report; an error means that it has added none. A row that a host of
// this kind cannot have is added as such (Report::AddNotHere), which is no error.
#pragma once

#include <cstdint>

#include <gantry/error.h>

#include "tests/performance/lab.h"
#include "tests/performance/report.h"

namespace gantry::bench {

/// What a run is to be like; every count has a sensible share of `rounds`.
struct Extent {
  int rounds = 30;

  int warm() const { return rounds < 5 ? 1 : 3; }
};

/// memory-1, memory-10, memory-100, memory-slope, memory-back
Status MemoryRows(Lab& lab, const Extent& extent, Report& report);
/// executions
Status ExecutionRows(Lab& lab, const Extent& extent, Report& report);
/// run-runc; run-crun
Status RunRuncRow(Lab& lab, const Extent& extent, Report& report);
Status RunCrunRow(Lab& lab, const Extent& extent, Report& report);
/// shim-start
Status ShimStartRow(Lab& lab, const Extent& extent, Report& report);
/// life-runc; life-crun
Status LifeRuncRow(Lab& lab, const Extent& extent, Report& report);
Status LifeCrunRow(Lab& lab, const Extent& extent, Report& report);
/// exec-runc; exec-crun
Status ExecRuncRow(Lab& lab, const Extent& extent, Report& report);
Status ExecCrunRow(Lab& lab, const Extent& extent, Report& report);
/// stdout, stdout-cpu
Status StdoutRows(Lab& lab, const Extent& extent, Report& report);
/// stdout-streaming
Status StdoutStreamingRow(Lab& lab, const Extent& extent, Report& report);
/// exec-stdout, exec-stdout-cpu; exec-tty, exec-tty-cpu
Status ExecStdoutRows(Lab& lab, const Extent& extent, Report& report);
Status ExecTtyRows(Lab& lab, const Extent& extent, Report& report);
/// update-systemd
Status UpdateSystemdRow(Lab& lab, const Extent& extent, Report& report);
/// state-1, state-8, state-64, each with its -p99
Status StateRows(Lab& lab, const Extent& extent, Report& report);

/// gap-crash-N, gap-upgrade-N, gap-keeper-N with N = 1, 100, 500; the same of gap-exec-
/// and gap-stream- with 100; recovery-slope
Status GapRows(Lab& lab, const Extent& extent, Report& report);

/// memory-grpc
Status GrpcMemoryRow(Lab& lab, const Extent& extent, Report& report);
/// pod-controller
Status PodControllerRow(Lab& lab, const Extent& extent, Report& report);

/// metrics-cost, metrics-scrape
Status MetricsRows(Lab& lab, const Extent& extent, Report& report);

/// trace-cost
Status TraceRow(Lab& lab, const Extent& extent, Report& report);

/// churn-growth
Status ChurnRow(Lab& lab, const Extent& extent, Report& report);

/// pod-sandbox, pod-start, pod-batch
Status PodRows(Lab& lab, const Extent& extent, Report& report);
/// pod-memory, pod-holder
Status PodMemoryRows(Lab& lab, const Extent& extent, Report& report);
/// pod-executions
Status PodExecutionRow(Lab& lab, const Extent& extent, Report& report);
/// plugin-call
Status PluginCallRow(Lab& lab, const Extent& extent, Report& report);

/// The other half of the stdout rows: in the container, writes so many bytes.
int WriteBytes(uint64_t bytes);
/// Of the gap-stream rows: writes a byte every millisecond until nobody reads.
int WriteTicks();

}  // namespace gantry::bench
