// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/metrics/full_moment.h"

#include <chrono>

namespace gantry::test {

using metrics::Ending;
using metrics::Moment;

metrics::Moment FullMoment() {
  Moment moment;
  moment.version = "1.2.3";
  moment.started_at = 1'700'000'000.5;
  moment.sandboxes = {{{"runc", "running"}, 3}};
  moment.containers = {{{"runc", "running"}, 4}, {{"wasm", "stopped"}, 1}};
  moment.execs = {{"runc", 2}};
  moment.figures.Call({"runc", "Start", "init"}, std::chrono::milliseconds(20), false);
  moment.figures.Call({"runc", "Start", "exec"}, std::chrono::milliseconds(20), true);
  moment.figures.Exit("runc", false, Ending::kOutOfMemory);
  moment.figures.Exit("runc", true, Ending::kZero);
  moment.figures.out_of_memory = {{"runc", 1}};
  moment.calls.answers = {{"containerd.task.v3.Task", "Start", "OK", 7}, {"", "", "X", 1}};
  moment.workers = {{"engine", "", 1, 2, 3, 4}, {"backend", "runc", 5, 6, 0, 7}};
  moment.spans = metrics::Spans{.queued = 3, .dropped = 2, .exported = 7, .refused = 1};
  moment.backends = {{"runc", "1.0", true}, {"vmm", "", false}};
  moment.backend_figures = {{"vmm", "", "warm_ready", 5}, {"vmm", "kata", "warm_ready", 6}};
  moment.backend_counters = {{"vmm", "", "boots", 8}};
  moment.keeper.emplace();
  moment.keeper->engine_starts = 9;
  moment.sandbox_rows = {{{.ns = "k8s.io",
                           .id = "p1",
                           .backend = "runc",
                           .cpu_us = 1'500'000,
                           .memory_bytes = 4096,
                           .engine_cpu_ns = 250'000'000},
                          {.ns = "k8s.io", .id = "p2", .backend = "runc"}}};
  return moment;
}

}  // namespace gantry::test
