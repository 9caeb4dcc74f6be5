// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/oom_score.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {
namespace {

Status Write(HostPid pid, int score) {
  const std::string path = Format("/proc/{}/oom_score_adj", pid.value);
  const std::string text = std::to_string(score);
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || write(file.get(), text.data(), text.size()) < 0) {
    return FailErrno(errno, "write '{}' into '{}'", text, path);
  }
  return {};
}

}  // namespace

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

std::optional<int> OomScores::OfSentry() const {
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
  const Status set = Write(process.pid(), *score);
  if (!set && set.error().code != Code::kNotFound) {
    context.Log(LogLevel::kWarning, set.error().message);
  }
}

}  // namespace gantry::gvisor
