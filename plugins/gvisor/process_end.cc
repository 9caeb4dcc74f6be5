// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/process_end.h"

#include <signal.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/container.h"
#include "plugins/gvisor/out_of_memory.h"

namespace gantry::gvisor {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr size_t kMaxFile = 256;

/// Its sentry is gone, or its gofer, whose end is that of its container alone.
bool WasForMemory(const EndPlan& plan, std::optional<uint32_t> status) {
  if (!status) {
    return KilledForMemory(*plan.pod, plan.pod->process());
  }
  return *status == kKilledStatus && plan.gofer && KilledForMemory(*plan.pod, plan.gofer);
}

}  // namespace

Status KnownProcess::Write(const std::string& path) const {
  std::string text = std::to_string(pid);
  if (exit) {
    text += Format(" {} {} {}", exit->status, exit->exited_at_ns, out_of_memory ? 1 : 0);
  }
  return ReplaceFile(path, text, kFileMode);
}

Result<KnownProcess> KnownProcess::Read(const std::string& path) {
  GANTRY_TRY(const std::string text, ReadFile(path, kMaxFile));
  std::vector<int64_t> numbers;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t space = std::min(rest.find(' '), rest.size());
    const auto number = ParseNumber(rest.substr(0, space));
    if (!number) {
      return Fail(Code::kInternal, "read the file of a process '{}': '{}'", path, text);
    }
    numbers.push_back(*number);
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  // Without the last one: as engines before this one have written it.
  if (numbers.size() != 1 && numbers.size() != 3 && numbers.size() != 4) {
    return Fail(Code::kInternal, "read the file of a process '{}': '{}'", path, text);
  }
  KnownProcess known;
  known.pid = static_cast<int32_t>(numbers[0]);
  if (numbers.size() > 1) {
    known.exit = {static_cast<uint32_t>(numbers[1]), numbers[2]};
    known.out_of_memory = numbers.size() > 3 && numbers[3] != 0;
  }
  return known;
}

void EndReport::Tell(ExitStatus exit, bool out_of_memory) {
  const std::lock_guard lock(mutex_);
  if (context_ != nullptr && !told_) {
    if (out_of_memory && container_ != nullptr) {
      container_->OutOfMemory();
    }
    context_->Exited(exit);
    out_of_memory_ = out_of_memory;
  }
  told_ = true;
}

bool EndReport::TellKnown(const KnownProcess& known) {
  if (!known.exit) {
    return false;
  }
  Tell(*known.exit, known.out_of_memory);
  return true;
}

void EndReport::Retire() {
  const std::lock_guard lock(mutex_);
  context_ = nullptr;
}

bool EndReport::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

bool EndReport::out_of_memory() const {
  const std::lock_guard lock(mutex_);
  return out_of_memory_;
}

ExitWait::Ended TellEnd(std::shared_ptr<EndReport> report, EndPlan plan) {
  return [report = std::move(report), plan = std::move(plan)](std::optional<uint32_t> status) {
    const ExitStatus exit = ExitedNow(status.value_or(kKilledStatus));
    const bool out_of_memory = !plan.container.empty() && WasForMemory(plan, status);
    if (plan.leaves_processes) {
      KillLeftovers(*plan.pod, plan.container);
    }
    if (KnownProcess{plan.pid, exit, out_of_memory}.Write(plan.path)) {
      // A sentry that ends waits for those that are connected with it. Before it is told: of an
      // exec whose end is on record the next engine asks nothing here.
      plan.pod->context().Drop(plan.name);
    }
    report->Tell(exit, out_of_memory);
  };
}

}  // namespace gantry::gvisor
