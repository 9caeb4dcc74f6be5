// SPDX-License-Identifier: Apache-2.0
//
// A process in a container of its own, made of a config.json: ready to execute its program, and
// executing it when it is told to.
//
// Two children are made. The first has the maker's rights: it opens what is the host's, joins and
// makes namespaces, and ends when it has made the second, which is the container's process and a
// child of who made the first. What needs rights over the node that neither has in a user namespace
// (id maps, clocks, resource limits, scheduler) is done by the maker, from outside, when they ask.
//
// What a container could use against its maker is not there when it can: before a namespace is
// joined all descriptors that are not named here are closed, and nobody without rights over the
// node may look into the process (PR_SET_DUMPABLE); files of /proc are the maker's own; nothing of
// the container is executed but its program, with the container's rights.
//
// Where runtimes differ, or the specification says nothing: without `capabilities` the process has
// none, as with runc. What `linux.seccomp` forbids is forbidden to the program, not to its making:
// but for execve (close, of a program that is built in), and for sendmsg where the filter has a
// listener. A session keyring and a loopback that is up are new with the namespaces. Names of
// capabilities and system calls that are not known here are left out and told, as the specification
// wants it.
//
// Needs: Linux 5.12; /proc. Works in a program that is static, and as PID 1.
// Source: OCI runtime-spec 1.2, config.md and config-linux.md.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/container/built_in_program.h>
#include <gantry/toolkit/container/rootfs.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

struct MakeRequest {
  oci::Spec spec;
  /// Absolute; what is relative in the spec is relative to it.
  std::string bundle;
  EnterBy enter_by = EnterBy::kPivot;
  /// The container's, for the agent at `linux.seccomp.listenerPath`, which is told it.
  std::string id;
  /// What the process has as 0, 1 and 2, where it has no terminal. Borrowed; negative: /dev/null.
  std::array<int, 3> streams = {-1, -1, -1};
  /// What it has as 3, 4 and so on. Borrowed.
  std::vector<int> passed_on;
  /// The process is a child of the maker's parent, as both children are: who started a program that
  /// does nothing but make the container, and collects all of its children. The maker's parent then
  /// sees the end of the first child, too.
  bool sibling = false;
  /// What the filter asks about is answered by the caller, who takes the listener from `Start`;
  /// else by the agent at `linux.seccomp.listenerPath`, and a filter that asks has to name one.
  bool takes_listener = false;
  /// Called in place of executing `process.args`. Borrowed; null: a file of the container's is
  /// executed.
  BuiltInProgram* program = nullptr;
};

struct SeccompAgent;

/// A container that is made and whose program has not been executed, or called where it is a
/// `BuiltInProgram`.
class MadeProcess {
 public:
  struct Parts {
    pid_t pid = 0;
    UniqueFd pidfd;
    UniqueFd console;
    UniqueFd channel;
    bool sibling = false;
    std::vector<std::string> warnings;
    /// Null: the caller takes the listener.
    std::shared_ptr<const SeccompAgent> agent;
  };

  explicit MadeProcess(Parts parts);
  MadeProcess(MadeProcess&&) noexcept = default;
  MadeProcess& operator=(MadeProcess&&) = delete;
  MadeProcess(const MadeProcess&) = delete;
  MadeProcess& operator=(const MadeProcess&) = delete;
  /// Where it was not started, it ends; it is collected unless it is the maker's sibling.
  ~MadeProcess();

  /// In the maker's pid namespace. The caller collects it, once it was started.
  pid_t pid() const { return parts_.pid; }

  const UniqueFd& pidfd() const { return parts_.pidfd; }

  /// The terminal's master, once; none where the spec has no terminal.
  UniqueFd TakeConsole() { return std::move(parts_.console); }

  /// What of the spec was left out, a sentence each.
  const std::vector<std::string>& warnings() const { return parts_.warnings; }

  /// Executes the program. `listener`: of the system calls that the filter asks about, with
  /// `takes_listener`; the process may be waiting for its answers already.
  /// Blocks: until it is executed, and up to ten seconds for the agent. Errors: kNotFound,
  /// kPermissionDenied and the errno's, naming the file, or the agent's socket; then the process
  /// has ended. Again: kFailedPrecondition.
  Status Start(UniqueFd* listener = nullptr);

 private:
  Status TakeListener(UniqueFd fd, UniqueFd* listener) const;

  Parts parts_;
};

/// Makes it. Thread: the only one of its process, since the children go on with copies of its
/// memory. Blocks: as file systems do. The calling process changes nothing of itself.
/// Errors: each names the step, what it was about, and the errno; then nothing is left but what
/// was made on the host's file systems (mount points, `cwd`). kInvalidArgument: the spec asks for
/// what cannot be.
Result<MadeProcess> Make(MakeRequest request);

}  // namespace gantry::container
