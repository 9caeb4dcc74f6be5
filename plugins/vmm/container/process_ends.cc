// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/container/process_ends.h"

namespace gantry::vmm {

namespace {

int64_t NowOnTheHost() { return ExitedNow(0).exited_at_ns; }

}  // namespace

ExitStatus EndOf(const protocol::ProcessReport& report, int64_t since_ns) {
  return {.status = ClampStatus(report.status),
          .exited_at_ns = ClampTime(report.exited_at_ns, since_ns, NowOnTheHost())};
}

void ProcessEnds::Add(const std::string& container, const std::string& exec,
                      const std::shared_ptr<EndReport>& report,
                      std::shared_ptr<ContainerRecord> record, std::optional<int64_t> since_ns) {
  std::optional<bool> ended;
  {
    const MutexLock lock(mutex_);
    entries_[{container, exec}] = {report, std::move(record), since_ns.value_or(NowOnTheHost())};
    ended = machine_ended_;
  }
  if (ended) {
    report->Tell(ExitedNow(kKilledStatus), *ended);
  }
}

void ProcessEnds::Starting(const std::string& container, const std::string& exec) {
  const MutexLock lock(mutex_);
  if (const auto found = entries_.find({container, exec}); found != entries_.end()) {
    found->second.since_ns = NowOnTheHost();
  }
}

void ProcessEnds::Remove(const std::string& container, const std::string& exec) {
  const MutexLock lock(mutex_);
  entries_.erase({container, exec});
}

std::optional<ProcessEnds::Entry> ProcessEnds::Find(const std::string& container,
                                                    const std::string& exec) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find({container, exec});
  return found == entries_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t ProcessEnds::OnMachineStarted() {
  const MutexLock lock(mutex_);
  machine_ended_.reset();
  return ++machine_;
}

void ProcessEnds::OnExited(const AgentExit& exit) const {
  if (const auto known = Find(exit.container, exit.exec)) {
    known->report->Tell(
        {.status = exit.exit.status,
         .exited_at_ns = ClampTime(exit.exit.exited_at_ns, known->since_ns, NowOnTheHost())});
  }
}

void ProcessEnds::OnOutOfMemory(const std::string& container, uint64_t kills) const {
  const auto known = Find(container, "");
  if (known && known->record) {
    known->record->OutOfMemory(kills);
  }
}

void ProcessEnds::OnListed(const protocol::ListAnswer& list) const {
  for (const protocol::ContainerReport& container : list.containers) {
    if (container.oom_kills > 0) {
      OnOutOfMemory(container.container, container.oom_kills);
    }
    for (const protocol::ProcessReport& process : container.processes) {
      if (process.state == static_cast<uint32_t>(protocol::ProcessState::kExited)) {
        OnExited({container.container, process.exec, EndOf(process, 0)});
      }
    }
  }
}

// Execs first, as where one process after the other ends.
void ProcessEnds::OnMachineEnded(bool out_of_memory, std::optional<uint64_t> machine) {
  std::vector<std::shared_ptr<EndReport>> inits;
  std::vector<std::shared_ptr<EndReport>> execs;
  {
    const MutexLock lock(mutex_);
    if (machine && *machine != machine_) {
      return;
    }
    machine_ended_ = out_of_memory;
    for (const auto& [name, entry] : entries_) {
      (name.second.empty() ? inits : execs).push_back(entry.report);
    }
  }
  for (const auto* const all : {&execs, &inits}) {
    for (const auto& report : *all) {
      report->Tell(ExitedNow(kKilledStatus), out_of_memory);
    }
  }
}

}  // namespace gantry::vmm
