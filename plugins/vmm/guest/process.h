// SPDX-License-Identifier: Apache-2.0
//
// What the agent knows of a container and its processes. Plain data; containers.h has the rules.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/cgroup/notify.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/guest/maker.h"
#include "plugins/vmm/guest/stream.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm::guest {

/// Of a call: the answer's bytes. Called once.
using Reply = std::function<void(Result<std::string> answer)>;

struct Process {
  std::string exec;
  protocol::ProcessState state = protocol::ProcessState::kMaking;
  pid_t pid = 0;
  UniqueFd pidfd;
  /// Until the program runs.
  Maker maker;
  Loop::Watch on_maker;
  /// Who waits for it to be made, to be started, or to be gone.
  Reply made;
  Reply started;
  std::vector<Reply> deleted;
  /// Its Start has failed: its end is told to nobody.
  bool never_ran = false;
  /// How it has ended before its maker has said that it ran.
  std::optional<int> ended_early;
  uint32_t status = 0;
  int64_t exited_at_ns = 0;
  /// The agent's side of its terminal, for its size.
  UniqueFd console;
  /// The connection for the terminal, until there is one.
  UniqueFd terminal_socket;
  std::string terminal_token;
  std::vector<std::unique_ptr<Stream>> streams;
};

struct Container {
  std::string id;
  std::string bundle;
  std::string folder;
  cgroup::Cgroup cgroup;
  bool paused = false;
  /// It is being taken apart.
  bool deleting = false;
  uint64_t oom_kills = 0;
  std::optional<cgroup::CgroupNotify> memory_events;
  Loop::Watch on_memory_events;
  /// By exec; the init has none.
  std::map<std::string, std::unique_ptr<Process>> processes;
};

}  // namespace gantry::vmm::guest
