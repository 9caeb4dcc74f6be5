// SPDX-License-Identifier: Apache-2.0
//
// Real processes for the tests of `SpawnProcess`.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include <gantry/host_process.h>
#include <gantry/toolkit/descriptors/pipe.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/process/pidfd.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "core/os/splice.h"

namespace gantry::os {

/// Kills and collects its process.
class Child {
 public:
  explicit Child(SpawnResult spawned) : spawned_(std::move(spawned)) {}

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ~Child() {
    if (spawned_.pidfd) {
      IgnoreError(SendSignal(pidfd(), SIGKILL), "it may have ended");
      Wait();
    }
  }

  /// Its exit code as containerd sees it; 999 after ten seconds.
  uint32_t Wait() {
    pollfd poller{.fd = pidfd(), .events = POLLIN, .revents = 0};
    int status = 0;
    if (poll(&poller, 1, 10000) != 1 || waitpid(process().pid, &status, 0) != process().pid) {
      return 999;
    }
    spawned_.pidfd.reset();
    return WaitStatus{status}.code();
  }

  int pidfd() const { return spawned_.pidfd.get(); }

  ProcessId process() const { return spawned_.process; }

 private:
  SpawnResult spawned_;
};

/// Runs a shell script with its output in a pipe, and gives what it wrote.
struct ScriptResult {
  uint32_t exit_code = 0;
  std::string output;
};

inline Result<ScriptResult> RunScript(const std::string& script, SpawnRequest request = {}) {
  GANTRY_TRY(auto pipe, MakePipe());
  request.argv = {"/bin/sh", "-c", script};
  if (request.env.empty()) {
    request.env = {"PATH=/usr/bin:/bin"};
  }
  request.descriptors.push_back({.fd = pipe.second.get(), .target = 1});
  GANTRY_TRY(auto spawned, SpawnProcess(request));
  Child child(std::move(spawned));
  pipe.second.reset();
  ScriptResult result;
  pollfd poller{.fd = pipe.first.get(), .events = POLLIN, .revents = 0};
  while (poll(&poller, 1, 10000) == 1) {
    std::array<char, 4096> buffer{};
    GANTRY_TRY(const Transfer got, ReadSome(pipe.first.get(), buffer));
    if (got.end) {
      break;
    }
    result.output.append(buffer.data(), got.bytes);
  }
  result.exit_code = child.Wait();
  return result;
}

/// A new cgroup of version 2; its path is empty where none can be made.
class TestCgroup {
 public:
  TestCgroup() {
    for (const std::string root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      const std::string group = root + "/gantry-" + RandomName(8);
      if (Exists(root + "/cgroup.controllers") && mkdir(group.c_str(), 0755) == 0) {
        path = group;
        name = group.substr(root.size());
        dir = OpenDirectory(group).value();
        return;
      }
    }
  }

  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;

  ~TestCgroup() { rmdir(path.c_str()); }

  std::string path;
  std::string name;
  UniqueFd dir;
};

}  // namespace gantry::os
