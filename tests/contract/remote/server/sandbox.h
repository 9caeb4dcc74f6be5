// SPDX-License-Identifier: Apache-2.0
//
// The fake sandbox: containers and their processes as a guest agent or a sentry
// would keep them, reached through the door (message.h). It stands for those,
// so it takes no help of the host but namespaces: no cgroup, and nobody
// outside knows the pids of what runs inside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "tests/contract/remote/message.h"
#include "tests/contract/remote/server/child.h"

namespace gantry::remote {

/// Thread: one.
class FakeSandbox {
 public:
  explicit FakeSandbox(UniqueFd door) : door_(std::move(door)) {}

  FakeSandbox(const FakeSandbox&) = delete;
  FakeSandbox& operator=(const FakeSandbox&) = delete;

  /// Serves until it is told to end or the door is closed, then ends all.
  int Run();

 private:
  enum class State { kCreated, kRunning, kEnded };

  struct Process {
    std::string container;
    std::string exec;
    Child child;
    /// Its pid inside.
    uint32_t number = 0;
    State state = State::kCreated;
    uint32_t status = 0;
    int64_t ended_at_ns = 0;
  };

  struct Container {
    Process init;
    std::map<std::string, Process> execs;
    bool paused = false;
    uint64_t memory_limit = 0;
    /// The annotation `remote.test/foreign-console`.
    bool foreign_console = false;
    /// The annotation `remote.test/oom-exit`.
    std::optional<uint32_t> oom_status;
  };

  bool ServeDoor();
  void ServeSignals(int fd);
  Result<Message> Handle(Message call);
  Result<Message> Create(Message call);
  Result<Message> Exec(Message call);
  Status Start(const Json& call);
  Result<Message> StateOf(const Json& call);
  Status Kill(const Json& call);
  Status SetPaused(const Json& call, bool paused);
  Message Delete(const Json& call);
  Json Stats(const Container& container) const;
  Json Processes(const Container& container) const;

  Result<Container*> FindContainer(const Json& call);
  Result<Process*> Find(const Json& call);
  void OnReaped(pid_t pid, int wait_status);
  static void Conclude(Process& process, int wait_status);
  static void End(Process& process, Json& ended);
  static void End(Container& container, Json& ended);
  void EndAll();
  void Report(const Json& event);
  static Json ExitOf(const Process& process);

  UniqueFd door_;
  bool ending_ = false;
  std::map<std::string, Container> containers_;
  /// Connections that asked for events.
  std::vector<UniqueFd> listeners_;
};

}  // namespace gantry::remote
