// SPDX-License-Identifier: Apache-2.0
//
// Who is to hear how the processes of a pod end. The guest tells it, and may tell what it likes: of
// a process that is none of the pod's nobody hears, and of each the first word counts. When the
// machine ends all of them have ended with it, and none with success.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gantry/process.h>
#include <gantry/toolkit/guest/process_end.h>
#include <gantry/toolkit/sync/mutex.h>

#include "plugins/vmm/agent/events.h"
#include "plugins/vmm/container/container_record.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {

/// Of one that has ended, as far as a guest can be believed: neither before `since_ns` nor after
/// now.
ExitStatus EndOf(const protocol::ProcessReport& report, int64_t since_ns);

/// Thread: any.
class ProcessEnds {
 public:
  /// Before the guest is asked to start the process, so that no end is missed. `exec`: empty: the
  /// container's init, which has `record`. Where the machine has ended it is told at once.
  /// `since_ns`: it cannot have ended before; left out: now.
  void Add(const std::string& container, const std::string& exec,
           const std::shared_ptr<EndReport>& report,
           std::shared_ptr<ContainerRecord> record = nullptr, std::optional<int64_t> since_ns = {});
  /// It is started now, and ends after that, whatever the guest's clock says.
  void Starting(const std::string& container, const std::string& exec);
  /// Again: nothing.
  void Remove(const std::string& container, const std::string& exec);

  /// From now on ends are those of the guest's processes. What it returns names the machine.
  uint64_t OnMachineStarted();
  void OnExited(const AgentExit& exit) const;
  void OnOutOfMemory(const std::string& container, uint64_t kills) const;
  /// What the guest has to say to who was away: whoever has ended has not told it to anybody else.
  void OnListed(const protocol::ListAnswer& list) const;
  /// `out_of_memory`: that is why. `machine`: which; of one before the last it is no news. Left
  /// out: the last.
  void OnMachineEnded(bool out_of_memory, std::optional<uint64_t> machine = {});

 private:
  struct Entry {
    std::shared_ptr<EndReport> report;
    std::shared_ptr<ContainerRecord> record;
    int64_t since_ns = 0;
  };

  std::optional<Entry> Find(const std::string& container, const std::string& exec) const;

  mutable Mutex mutex_;
  /// By container and exec.
  std::map<std::pair<std::string, std::string>, Entry> entries_ GANTRY_GUARDED_BY(mutex_);
  uint64_t machine_ GANTRY_GUARDED_BY(mutex_) = 0;
  /// Whether it was for want of memory, once the machine has ended.
  std::optional<bool> machine_ended_ GANTRY_GUARDED_BY(mutex_);
};

}  // namespace gantry::vmm
