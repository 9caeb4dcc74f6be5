// SPDX-License-Identifier: Apache-2.0
//
// For backends: a process that gantry-init makes (docs/gantry-init.md), or another program that is
// called as it is (gated_program.h): a container's init or one of its execs, which waits at its
// gate until its Start. It outlives the engine at every moment: what an engine was killed over is
// either found by the next one, at its gate or running, or it ends by itself.
//
// Gate, answers and terminal are one socket, which the core stores. The process gets its tag when
// that is stored: so what is found by its tag has a gate that can be opened, and what was made
// but has no tag loses its gate when the next engine asks for it, or ends the sandbox; gantry-init
// takes that for the order to give up.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/process.h>
#include <gantry/toolkit/oci/spec.h>
#include <gantry/unique_fd.h>

namespace gantry {

/// What is to be made.
struct GatedRequest {
  /// The container's: its id, its bundle, absolute, and its config.json.
  std::string id;
  std::string bundle;
  std::string spec_json;
  /// Of an exec: a process of the container, its init, and the OCI process object.
  std::shared_ptr<HostProcess> init;
  std::string process_json;
  /// The process has a terminal, which goes to the core (`ProcessContext::AttachConsole`).
  bool terminal = false;
  /// Who makes it: what `ps` shows and errors say, its environment, words of its own, as they are,
  /// and descriptors as `--NAME=FD`.
  std::string name = "gantry-init";
  std::vector<std::string> env{};
  std::vector<std::string> words{};
  std::vector<std::pair<std::string, UniqueFd>> fds{};
  /// Directories to be born in: of `ContainerContext::MakeCgroups`.
  std::vector<std::string> cgroups;
};

/// Whether a process with these rights may be made in `cgroups`, those of `MakeCgroups`: who may
/// make devices is kept from the node's by their rules alone. Errors: kUnimplemented: there is
/// none. Thread: any.
Status CheckDevices(const oci::ProcessSpec& process, const std::vector<std::string>& cgroups);

/// Thread: one at a time. Blocks: for the answers of gantry-init, as file systems do.
/// Owner: the contexts are borrowed and outlive it.
class GatedProcess {
 public:
  /// `tag`: see `SandboxContext::FindSpawned`; of one sandbox each process has its own.
  GatedProcess(SandboxContext& sandbox, ProcessContext& context, std::string tag);

  /// The process; null: it was neither made nor found.
  const std::shared_ptr<HostProcess>& host() const { return host_; }

  /// Makes it and binds it; it waits at its gate. `program`: that of `request.name`, open, as
  /// `OpenHelper("gantry-init")` gives it. The core's streams become its own.
  /// Errors: those of gantry-init, with their code: kNotFound: its program, or a file that is to
  /// be mounted; kInvalidArgument: its spec; kInternal: the program has ended without an answer;
  /// those of the contexts. What there is then ends with `End`, or with this object.
  Status Make(const UniqueFd& program, GatedRequest request);

  /// Finds and binds what an engine before this one has made. Errors: kAborted: it never was
  /// there for good, and nothing is left of it.
  Status Recover();

  /// Whether it has been opened, by an engine before or by this one. Of one that was made or found.
  /// Errors: as `SandboxContext::Take`, but for kNotFound.
  Result<bool> IsOpen() const;

  /// Executes its program. Again, also in the next engine: success. Errors: those of gantry-init.
  Status Open();

  /// Ends it, with SIGKILL, and who makes it, and forgets its gate. Again, and where there is none:
  /// success. Errors: kDeadlineExceeded: it has not ended within `limit`.
  Status End(std::chrono::milliseconds limit);

 private:
  Status AwaitMade(const GatedRequest& request);
  Status TakeConsole();

  SandboxContext& sandbox_;
  ProcessContext& context_;
  const std::string tag_;
  /// The socket's name in the store, which is shorter than a tag may be.
  const std::string stored_as_;
  UniqueFd socket_;
  /// gantry-init, of a process that this engine has made; it ends when the program runs.
  std::shared_ptr<HostProcess> maker_;
  std::shared_ptr<HostProcess> host_;
};

}  // namespace gantry
