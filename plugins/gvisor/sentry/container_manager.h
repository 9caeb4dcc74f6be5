// SPDX-License-Identifier: Apache-2.0
//
// The calls of a sentry that serve containers, by the names that they have there. One
// sentry has one root container and any number of sub-containers; their processes are in one
// pid namespace, whose numbers are used throughout.
//
// Nothing here guards against calls that kill or hang a sentry; see sentry.h.
// Source: runsc 20240729 and 2026-09, runsc/boot/controller.go, pkg/sentry/control/proc.go.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/toolkit/oci/spec.h>

#include "plugins/gvisor/urpc/client.h"

namespace gantry::gvisor {

using urpc::Outcome;

/// As wait(2) gives it: the exit code shifted by eight, or the signal's number.
struct WaitWord {
  uint32_t raw = 0;

  /// The exit code, or 128 + the signal's number.
  uint32_t status() const;
};

enum class RuntimeState { kInvalid = 0, kCreated = 1, kRunning = 2, kStopped = 3 };

/// Whom a signal reaches.
enum class SignalMode {
  kProcess = 0,
  /// Every process of the container.
  kAll = 1,
  /// The foreground process group of the process's terminal.
  kForeground = 2,
};

struct SignalTarget {
  std::string container;
  /// 0: the container's init.
  int32_t pid = 0;
  SignalMode mode = SignalMode::kProcess;
};

struct ProcessLine {
  uint32_t pid = 0;
  /// 0: it was executed from outside.
  uint32_t parent = 0;
  uint32_t uid = 0;
  std::string command;
};

/// A process in a container that runs.
struct ExecArgs {
  std::string container;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> additional_gids;

  /// None: as root has them, for uid 0 all, and a bounding set that is full for any.
  std::optional<oci::Capabilities> capabilities;
  bool no_new_privileges = false;
  bool terminal = false;
  /// The numbers of the descriptors that go with it. One descriptor more is the program, and
  /// `argv[0]` then but a name.
  std::vector<int> guest_fds = {0, 1, 2};
};

/// How the file system of a mount is served. Source: runsc/boot/gofer_conf.go.
struct MountConf {
  enum class Upper { kNone = 0, kMemory = 1, kSelf = 2, kAnon = 3 };
  enum class Lower { kNone = 0, kGofer = 1, kErofs = 2 };
  Lower lower = Lower::kGofer;
  Upper upper = Upper::kNone;

  /// As the flag `--gofer-mount-confs` takes it: "lisafs:self".
  std::string Text() const;
};

struct Subcontainer {
  std::string id;
  /// The OCI spec, as JSON, with the mounts that the gofer has resolved.
  std::string spec_json;
  /// The flags that sentry and gofer were started with, as JSON.
  std::string conf_json;
  /// With the call go: standard streams (none with a terminal), files of the writable layers,
  /// gofer connections, in this order.
  std::vector<MountConf> mounts;
  size_t filestores = 0;
};

/// What processes have spent, by the sentry's own accounts, which count in ticks of 10 ms and
/// may count more than the host has given them.
struct CpuTimes {
  /// Of the container.
  uint64_t own_ns = 0;
  /// Of all containers.
  uint64_t all_ns = 0;
};

/// What a container uses, by the sentry's own accounts.
struct Usage {
  /// Without a mount of type `cgroup` in its spec the sentry gives each container an equal
  /// part of all, and that also to one that has not been started.
  uint64_t memory_bytes = 0;
  /// 0: it has ended.
  uint64_t processes = 0;
  /// Of processes that run: it falls when one ends. None: the sentry has not said.
  std::optional<CpuTimes> cpu;
};

/// Calls that start something, for whoever makes them durably: their arguments as JSON.
inline constexpr std::string_view kStartRoot = "containerManager.StartRoot";
/// In place of `SetNetworkArgs` before 2026-07, in the same form. Refused the second time.
inline constexpr std::string_view kCreateLinks = "Network.CreateLinksAndRoutes";
/// In place of `kStartRoot`, with the three files of a saved sandbox.
inline constexpr std::string_view kRestore = "containerManager.Restore";
inline constexpr std::string_view kRestoreArg = R"({"HavePagesFile":true,"HaveDeviceFile":false})";
inline constexpr std::string_view kStartSubcontainer = "containerManager.StartSubcontainer";
inline constexpr std::string_view kExecuteAsync = "containerManager.ExecuteAsync";
inline constexpr std::string_view kSignal = "containerManager.Signal";
/// Of the whole sandbox, into the three files that go with it. `CheckpointArg`.
inline constexpr std::string_view kCheckpoint = "containerManager.Checkpoint";
inline constexpr std::string_view kPause = "containerManager.Pause";
inline constexpr std::string_view kResume = "containerManager.Resume";
std::string StartRootArg(const std::string& id);
/// `build`: kept in the image for who reads it (`ImageInfo`). It goes on when it is saved: where
/// it is told to end with that, it ends, too, when it could not be saved.
std::string CheckpointArg(const std::string& build);
std::string StartSubcontainerArg(const Subcontainer& container);
std::string SignalArg(const SignalTarget& target, uint32_t signal);
/// With it go its descriptors: in, out, err, or the terminal's replica three times.
std::string ExecuteArg(const ExecArgs& args);
/// How a process ends that `kExecuteAsync` has started; for `PeekWait`. The first who gets an
/// answer is the only one.
inline constexpr std::string_view kWaitPid = "containerManager.WaitPID";
std::string WaitPidArg(const std::string& id, int32_t pid);
/// The new process's number.
Outcome<int32_t> ReadPid(const urpc::Answer& answer);

/// Thread: any. Each call blocks up to its deadline. Errors: as `urpc::Client::Call`.
class ContainerManager {
 public:
  explicit ContainerManager(std::string socket) : client_(std::move(socket)) {}

  urpc::Client& client() { return client_; }

  /// Keeps the id. `terminal`: the replica of its terminal.
  Outcome<void> CreateSubcontainer(const std::string& id, const UniqueFd* terminal,
                                   Deadline deadline);
  /// Ends every process of it and forgets how they ended. Not for the root.
  Outcome<void> DestroySubcontainer(const std::string& id, Deadline deadline);

  /// Asks how a container's init ends, on a connection for that alone. Again: the answer is the
  /// same until it is destroyed. The root's is to be opened before it is started: once it has
  /// ended, the sentry takes no new ones.
  static Outcome<void> SendWait(urpc::Connection& connection, const std::string& id,
                                Deadline deadline);
  /// The answer, once there is one; it stays in the connection.
  static Outcome<WaitWord> PeekWait(urpc::Connection& connection, Deadline deadline);

  /// Not to all: see `Sentry::SignalAll`.
  Outcome<void> Signal(const SignalTarget& target, uint32_t signal, Deadline deadline);
  Outcome<std::vector<ProcessLine>> Processes(const std::string& id, Deadline deadline);
  Outcome<Usage> Event(const std::string& id, Deadline deadline);
  /// Of all processes that there are and were, from the sentry's cgroups: v1, or v2 where it
  /// was started with that. Errors: kRefused: it has none of that container.
  /// Source: pkg/sentry/control/cgroups.go, pkg/sentry/fsimpl/cgroupfs.
  Outcome<CpuTimes> ReadCpuTimes(const std::string& id, Deadline deadline);
  /// As `Event`, without the times, from the sentry's cgroups. `Event` of 20240729 refuses a
  /// container in the node's network where one of its interfaces has no room in the first 4 KiB of
  /// /proc/net/dev, is just going, or somebody else asks at the same time. Errors: kRefused: the
  /// sentry has no cgroup of that container. Source: pkg/sentry/socket/hostinet/stack.go.
  Outcome<Usage> ReadUsage(const std::string& id, Deadline deadline);
  /// Of an id that it does not know: kStopped. Of one that is paused: kRunning.
  Outcome<RuntimeState> State(const std::string& id, Deadline deadline);
  /// The pod's network, as `NetworkArgs` says it, with its sockets; before the root is started.
  /// Releases before 2026-07 do not know it, and have `kCreateLinks`.
  Outcome<void> SetNetworkArgs(const std::string& args, std::span<const int> sockets,
                               Deadline deadline);

 private:
  Outcome<urpc::Answer> Call(std::string_view method, std::string_view arg, Deadline deadline,
                             std::span<const int> fds = {});
  Outcome<void> Order(std::string_view method, std::string_view arg, Deadline deadline,
                      std::span<const int> fds = {});

  urpc::Client client_;
};

}  // namespace gantry::gvisor
