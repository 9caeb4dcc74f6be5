// SPDX-License-Identifier: Apache-2.0
//
// One run of the OCI runtime's command line (crun, runc and others), and what
// came of it. What a command line reports is an exit code and text; here that
// becomes one of: it did it; it says why it refused; it was never able to say
// anything (missing, killed, hanging, garbage). And where it refused, whether
// the workload is to blame (no such program in the image) or the runtime.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/container.h>
#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/ids.h>
#include <gantry/unique_fd.h>

#include "plugins/runc/options.h"

namespace gantry::runc {

struct OciCall {
  /// The runtime's sub-command and what it is about, for messages: "create", "c1".
  std::string verb;
  std::string object;
  /// Its flags and operands.
  std::vector<std::string> args;
  /// `NAME=value`, beside PATH.
  std::vector<std::string> env{};
  /// Existing directory in which it runs and in which its log is put.
  std::string bundle;
  /// Name of the log file there; removed afterwards. Empty: it has none, and prints what it
  /// has to say.
  std::string log_name;
  /// Descriptors for the container's process: given as 0, 1 and 2.
  std::vector<std::pair<UniqueFd, int>> fds;
  /// 1 and 2 are not the container's: what is printed there is kept for the error.
  bool capture = false;
  /// What it printed when it succeeded; with `capture`. May be null.
  std::string* output = nullptr;
  /// For `FindSpawned`; may be empty.
  std::string tag;
  std::chrono::milliseconds limit{};
};

/// Adds `flag` where it is `set`.
void AddFlag(std::vector<std::string>& args, bool set, const char* flag);

/// Thread: workers. Copies are cheap enough; holds nothing of the kernel's.
class OciCommand {
 public:
  OciCommand(Options options, const Namespace& ns, SandboxContext& context);

  /// Uses this binary from now on whatever is installed later; empty: as the
  /// options say, at each run.
  void Pin(std::string binary) { binary_ = std::move(binary); }

  /// Has it put what it creates into scopes of systemd's, whatever the options say.
  void UseSystemd() { options_.systemd_cgroup = true; }

  /// The binary that will be run. Errors: kFailedPrecondition: none there.
  Result<std::string> Binary() const;

  const Options& options() const { return options_; }

  /// How long a run may take now: `TimeoutMs`, `times` that for slow verbs, and
  /// what is left of the time for the call that this thread runs. Without
  /// either: a minute, `times` that.
  std::chrono::milliseconds Limit(int times = 1) const;

  /// `delete --force` of a container, as it is run where no engine is. Errors: kFailedPrecondition:
  /// no binary.
  Result<HostCommand> ForcedDelete(const ContainerId& id, const std::string& bundle) const;

  /// Where the runtime keeps its state of a container.
  std::string StateDirectory(const ContainerId& id) const;

  /// Runs it to its end. Errors: kFailedPrecondition: no binary;
  /// kInvalidArgument: the workload cannot be run; kDeadlineExceeded: it hung
  /// and was killed; kInternal: all other failures of the runtime. `detail`
  /// has what it printed. Blocks: up to the call's limit.
  Status Run(OciCall call) const;

 private:
  Result<std::shared_ptr<HostProcess>> Spawn(const std::string& binary, SpawnRequest request) const;
  std::vector<std::string> Arguments(const std::string& binary, const OciCall& call) const;

  Options options_;
  std::string root_;
  SandboxContext* context_;
  std::string binary_;
};

/// Whether the runtime's text blames the program to be run, not the runtime.
bool BlamesWorkload(std::string_view text);

/// Whether it blames the node for cgroups of v1 and v2 beside each other. Source: crun 1.21,
/// src/libcrun/cgroup.c.
bool BlamesHybridCgroups(std::string_view text);

/// Ends a process that hangs, with its process group, and waits for that.
/// Blocks: up to a few seconds. Thread: workers.
void EndHanging(HostProcess& process);

}  // namespace gantry::runc
