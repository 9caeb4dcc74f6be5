// SPDX-License-Identifier: Apache-2.0
//
// Whom the kernel kills first when the node's memory runs out (`process.oomScoreAdj`), where one
// process of the host is all containers of a pod at once: it has the lowest of theirs; what a pause
// container is to have, which is never to be killed, counts as long as there is no other.
// Source: runsc 2026-09, runsc/container/container.go (adjustSandboxOOMScoreAdj);
// proc_pid_oom_score_adj(5).
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <gantry/context.h>
#include <gantry/host_process.h>

namespace gantry {

/// Of one that is not told: as of one in whose spec there is none.
inline constexpr int kOomScore = 0;

/// Thread: any.
class OomScores {
 public:
  /// Of the container that the sandbox was started with.
  void SetRoot(std::optional<int> score);
  /// Of a further one that has been started. Again: replaces.
  void Add(const std::string& container, std::optional<int> score);
  void Remove(const std::string& container);

  /// None: it is left as it is.
  std::optional<int> OfSandbox() const;

 private:
  /// Guards what follows.
  mutable std::mutex mutex_;
  std::optional<int> root_;
  std::map<std::string, int> further_;
};

/// Writes it. What has ended needs none; what the kernel refuses is logged: without
/// CAP_SYS_RESOURCE nobody can lower it, and all works nevertheless. Thread: any.
void SetOomScore(SandboxContext& context, const HostProcess& process, std::optional<int> score);

}  // namespace gantry
