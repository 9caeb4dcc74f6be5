// SPDX-License-Identifier: Apache-2.0
//
// A pod without a pause container has a cgroup around all that is in it, whose figures are the
// pod's; of others the figures of their containers are added up.
#include "core/ctl/top.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <thread>
#include <tuple>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/oci/json.h>

#include "core/ctl/client.h"
#include "core/ctl/output.h"

namespace gantry::ctl {
namespace {

constexpr double kPercent = 100;
/// Clears the screen and begins at its top. Source: ECMA-48, CUP and ED.
constexpr char kClear[] = "\x1b[H\x1b[J";

using Key = std::pair<std::string, std::string>;

std::map<Key, SandboxUse> BySandbox(const v1::ListResponse& list) {
  std::map<Key, SandboxUse> all;
  std::map<Key, SandboxUse> pods;
  for (const v1::Instance& instance : list.instances()) {
    const std::string& id = instance.sandbox_id().empty() ? instance.id() : instance.sandbox_id();
    const Key key{instance.namespace_(), id};
    if (instance.kind() == "sandbox") {
      pods[key] = {.ns = instance.namespace_(),
                   .id = id,
                   .backend = instance.backend(),
                   .state = instance.state(),
                   .cpu_ns = instance.cpu_ns(),
                   .memory_bytes = instance.memory_bytes(),
                   .pids = instance.pids()};
      continue;
    }
    SandboxUse& use = all[key];
    use.ns = instance.namespace_();
    use.id = id;
    use.backend = instance.backend();
    if (use.state.empty() || instance.id() == id) {
      use.state = instance.state();
    }
    ++use.containers;
    use.cpu_ns += instance.cpu_ns();
    use.memory_bytes += instance.memory_bytes();
    use.pids += instance.pids();
  }
  for (auto& [key, pod] : pods) {
    if (const auto found = all.find(key); found != all.end()) {
      pod.containers = found->second.containers;
    }
    all[key] = std::move(pod);
  }
  return all;
}

std::string PercentText(double percent) {
  return percent < 0 ? std::string() : Format("{:.1f}%", percent);
}

}  // namespace

std::vector<SandboxUse> UseSamples::Next(const v1::ListResponse& list,
                                         std::chrono::nanoseconds elapsed) {
  std::vector<SandboxUse> sorted;
  std::map<Key, uint64_t> now;
  for (auto& [key, use] : BySandbox(list)) {
    now[key] = use.cpu_ns;
    const auto before = cpu_ns_.find(key);
    if (before != cpu_ns_.end() && use.cpu_ns >= before->second && elapsed.count() > 0) {
      use.cpu_percent = kPercent * static_cast<double>(use.cpu_ns - before->second) /
                        static_cast<double>(elapsed.count());
    }
    sorted.push_back(std::move(use));
  }
  cpu_ns_ = std::move(now);
  std::ranges::stable_sort(sorted, std::greater(), [](const SandboxUse& use) {
    return std::tuple(use.cpu_percent, use.memory_bytes);
  });
  return sorted;
}

std::string UseTable(const std::vector<SandboxUse>& all) {
  Table table({"NAMESPACE", "SANDBOX", "BACKEND", "STATE", "CONTAINERS", "CPU", "CPU-TIME",
               "MEMORY", "PIDS"});
  for (const SandboxUse& use : all) {
    table.Add({use.ns, use.id, use.backend, use.state, std::to_string(use.containers),
               PercentText(use.cpu_percent), CpuText(use.cpu_ns), BytesText(use.memory_bytes),
               NumberText(use.pids)});
  }
  return table.str();
}

std::string UseJson(const std::vector<SandboxUse>& all) {
  std::string line = "[";
  for (const SandboxUse& use : all) {
    line += Format(
        "{}{{\"namespace\":{},\"id\":{},\"backend\":{},\"state\":{},\"containers\":{},"
        "\"cpu_percent\":{},\"cpu_ns\":{},\"memory_bytes\":{},\"pids\":{}}}",
        line.size() > 1 ? "," : "", oci::Quote(use.ns), oci::Quote(use.id), oci::Quote(use.backend),
        oci::Quote(use.state), use.containers,
        use.cpu_percent < 0 ? std::string("null") : Format("{:.2f}", use.cpu_percent), use.cpu_ns,
        use.memory_bytes, use.pids);
  }
  return line + "]\n";
}

Status ShowTop(const Arguments& arguments, const Output& output) {
  constexpr double kShortest = 0.1;
  constexpr double kLongest = 3600;
  if (!(arguments.interval >= kShortest && arguments.interval <= kLongest)) {
    return Fail(Code::kInvalidArgument, "top: --interval is {} to {} seconds", kShortest, kLongest);
  }
  const auto interval = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(arguments.interval));
  const uint64_t most = arguments.once ? 1 : arguments.count;
  GANTRY_TRY(OperatorClient client, OperatorClient::Connect(arguments.address));
  UseSamples samples;
  // Use of the processor is between two looks.
  GANTRY_TRY(v1::ListResponse list, client.ListUse(arguments.ns));
  auto looked = std::chrono::steady_clock::now();
  samples.Next(list, std::chrono::nanoseconds(0));
  for (uint64_t shown = 0; (most == 0 || shown < most) && output.out; ++shown) {
    std::this_thread::sleep_for(interval);
    GANTRY_TRY(list, client.ListUse(arguments.ns));
    const auto now = std::chrono::steady_clock::now();
    const std::vector<SandboxUse> all = samples.Next(list, now - std::exchange(looked, now));
    if (output.terminal && most != 1) {
      output.out << kClear;
    } else if (shown > 0 && !arguments.json) {
      output.out << "\n";
    }
    output.out << (arguments.json ? UseJson(all) : UseTable(all));
    output.out.flush();
  }
  return {};
}

}  // namespace gantry::ctl
