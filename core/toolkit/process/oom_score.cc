// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gantry/toolkit/process/oom_score.h>
#include <gantry/toolkit/process/rights.h>

namespace gantry {

void OomScores::SetRoot(std::optional<int> score) {
  const std::lock_guard lock(mutex_);
  root_ = score;
}

void OomScores::Add(const std::string& container, std::optional<int> score) {
  const std::lock_guard lock(mutex_);
  further_[container] = score.value_or(kOomScore);
}

void OomScores::Remove(const std::string& container) {
  const std::lock_guard lock(mutex_);
  further_.erase(container);
}

std::optional<int> OomScores::OfSandbox() const {
  const std::lock_guard lock(mutex_);
  if (further_.empty()) {
    return root_;
  }
  return std::ranges::min_element(further_, {}, [](const auto& one) { return one.second; })->second;
}

void SetOomScore(SandboxContext& context, const HostProcess& process, std::optional<int> score) {
  if (!score || process.Ended()) {
    return;
  }
  const Status set = WriteOomScore(process.pid(), *score);
  if (!set && set.error().code != Code::kNotFound) {
    context.Log(LogLevel::kWarning, set.error().message);
  }
}

}  // namespace gantry
