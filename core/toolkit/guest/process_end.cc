// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/format.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/guest/process_end.h>

namespace gantry {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr size_t kMaxFile = 256;

}  // namespace

ExitStatus ExitedNow(uint32_t status) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {status, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
}

bool EndsByDefault(uint32_t signal) {
  constexpr std::array<uint32_t, 8> kHarmless = {SIGCHLD, SIGCONT, SIGURG,  SIGWINCH,
                                                 SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  return signal != 0 && !std::ranges::contains(kHarmless, signal);
}

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

void ExecTable::Put(int32_t pid, const ExecId& exec) {
  const std::lock_guard lock(mutex_);
  execs_[pid] = exec;
}

void ExecTable::Remove(const ExecId& exec) {
  const std::lock_guard lock(mutex_);
  std::erase_if(execs_, [&](const auto& one) { return one.second == exec; });
}

ExecId ExecTable::Find(int32_t pid) const {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(pid);
  return found == execs_.end() ? ExecId() : found->second;
}

}  // namespace gantry
