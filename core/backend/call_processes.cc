// SPDX-License-Identifier: Apache-2.0
#include "core/backend/call_processes.h"

#include <utility>

#include <gantry/toolkit/process/pidfd.h>

namespace gantry::backend {
namespace {

thread_local std::shared_ptr<CallProcesses> current_call;

void EndProcessOfCall(const ProcessId& process) {
  // The identity is looked at once the descriptor is open.
  if (const Result<UniqueFd> pidfd = OpenPidfd(process)) {
    KillGroup(*pidfd);
    // One that leads no group.
    KillProcess(*pidfd);
  }
}

}  // namespace

CallProcesses::Scope::Scope(std::shared_ptr<CallProcesses> call)
    : before_(std::exchange(current_call, std::move(call))) {}

CallProcesses::Scope::~Scope() { current_call = std::move(before_); }

const std::shared_ptr<CallProcesses>& CallProcesses::Current() { return current_call; }

void CallProcesses::End(std::string reason) {
  const MutexLock lock(mutex_);
  ended_ = std::move(reason);
  for (const ProcessId& process : processes_) {
    EndProcessOfCall(process);
  }
}

Status CallProcesses::Check() const {
  const MutexLock lock(mutex_);
  return ended_.empty() ? Status() : Fail(Code::kFailedPrecondition, "{}", ended_);
}

void CallProcesses::Add(const ProcessId& process) {
  const MutexLock lock(mutex_);
  processes_.push_back(process);
  if (!ended_.empty()) {
    EndProcessOfCall(process);
  }
}

}  // namespace gantry::backend
