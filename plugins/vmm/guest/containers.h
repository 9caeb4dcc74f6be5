// SPDX-License-Identifier: Apache-2.0
//
// The containers of a guest: made, started, signalled, ended, taken apart.
//
// There is one place that waits for children, `Collect`. A process is one of a container's when its
// maker has said so; what ends that nobody knows is the maker's first child, a worker or an orphan,
// and is only collected. A process that ends before the agent has read of it is remembered for as
// long as a maker is at work.
//
// An end is told when it is known, and kept until Delete, so that a host that has missed it finds
// it by List. That the kernel has killed for want of memory is told before.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/hierarchy.h>

#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/guest/platform.h"
#include "plugins/vmm/guest/process.h"
#include "plugins/vmm/guest/workers.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm::guest {

/// Who is told. Both are called in a turn of the loop.
struct Tellers {
  std::function<void(const protocol::Exited& exited)> exited;
  std::function<void(const protocol::OutOfMemory& event)> out_of_memory;
  std::function<void(const std::string& line)> log;
};

/// Thread: the loop's. Blocks: never.
class Containers {
 public:
  static constexpr size_t kMost = 1024;
  static constexpr size_t kMostProcesses = 4096;
  /// Streams of processes that were deleted and whose host has not taken all.
  static constexpr size_t kMostLingering = 256;

  /// `folder`: where a folder of each container is made.
  Containers(Loop& loop, Workers& workers, Platform& platform, cgroup::CgroupHierarchy hierarchy,
             std::string folder, Tellers tellers);
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;
  ~Containers() = default;

  void Create(const protocol::CreateContainer& request, Reply reply);
  void Create(const protocol::CreateExec& request, Reply reply);
  void Start(const protocol::Start& request, Reply reply);
  void Delete(const protocol::Delete& request, Reply reply);
  void Freeze(const std::string& container, bool frozen, Reply reply);
  void Update(const protocol::Update& request, Reply reply);
  Status Signal(const protocol::Signal& request);
  Status Resize(const protocol::Resize& request);
  Result<protocol::StatsAnswer> Stats(const protocol::Stats& request);
  Result<protocol::PidsAnswer> Pids(const protocol::Pids& request);
  protocol::ListAnswer List() const;

  /// All containers are killed, and none is made from now on.
  void KillAll();
  /// Something that a process has said has not been read to its end by the host.
  bool HasUnread() const;
  /// Children that have ended. To be called on SIGCHLD.
  void Collect();

 private:
  Result<Container*> Find(const std::string& id);
  Result<Process*> FindProcess(const std::string& container, const std::string& exec);

  /// containers_make.cc
  Status Connect(const protocol::Streams& tokens, MakeOrder& order, Process& process,
                 std::vector<UniqueFd>& theirs);
  std::function<void(int)> SayNotDialled(const std::string& container);
  void Make(Container& container, const std::string& exec, MakeOrder order,
            const protocol::Streams& tokens, Reply reply);
  Status Begin(MakeOrder order, const protocol::Streams& tokens, Process& process);
  Result<cgroup::Cgroup> Allow(const protocol::CreateContainer& request) const;
  /// The exec's container, whose init runs.
  Result<Container*> Allow(const protocol::CreateExec& request);
  void OnWord(Container& container, Process& process, HeardWord heard);
  void OnMaker(const std::string& id, const std::string& exec);
  void Made(Container& container, Process& process, HeardWord heard);
  void Failed(Container& container, Process& process, Error error);
  void TellStarted(Container& container, Process& process, Result<std::string> answer);
  void WatchMemory(Container& container);

  /// containers_end.cc
  void HearMakers();
  void Ended(pid_t pid, int wait_status);
  void Ended(Container& container, Process& process, int wait_status);
  void LookAtMemory(Container& container);
  void Unmake(const std::string& id, Reply reply);
  void TellDeleted(Process& process);
  void DropMaker(Process& process);
  void DeleteExec(Container& container, Process& process, Reply reply);
  /// What they have to say still is said, though their process is gone.
  void Linger(Process& process);
  void ForgetStreams();

  Loop& loop_;
  Workers& workers_;
  Platform& platform_;
  const cgroup::CgroupHierarchy hierarchy_;
  const std::string folder_;
  const Tellers tellers_;
  std::map<std::string, std::unique_ptr<Container>> containers_;
  std::deque<std::unique_ptr<Stream>> lingering_;
  /// Ends of children that are nobody's yet.
  std::map<pid_t, int> unknown_;
  size_t makers_ = 0;
  bool closed_ = false;
};

}  // namespace gantry::vmm::guest
