// SPDX-License-Identifier: Apache-2.0
//
// One function for each kind of request; a new field of a request gets its value here.
#include "core/task/requests.h"

#include <utility>

#include "core/config/config.h"
#include "core/io/process_io.h"
#include "core/task/container.h"
#include "core/task/sandboxes.h"

namespace gantry::task {
namespace {

/// By what is on record: CRI's annotation is all that tells a pod's pause container, the first of
/// its sandbox, from one that stands alone.
SandboxKind KindFor(const Container& container) {
  const auto type = container.annotations.find("io.kubernetes.cri.container-type");
  const bool is_pause = type != container.annotations.end() && type->second == "sandbox";
  return is_pause || container.group->id != container.id.str() ? SandboxKind::kPaused
                                                               : SandboxKind::kImplied;
}

}  // namespace

ContainerRequest ContainerRequestOf(const Container& container, std::string spec_json) {
  ContainerRequest request;
  request.id = container.id;
  request.bundle = container.bundle;
  request.spec_json = std::move(spec_json);
  request.rootfs = container.rootfs;
  request.terminal = container.init->stdio.terminal;
  request.checkpoint = container.checkpoint;
  request.options_json = container.options_json;
  request.init_saved = container.init->saved;
  return request;
}

ExecRequest ExecRequestOf(const TaskProcess& exec) {
  return {exec.id, exec.spec_json, exec.stdio.terminal, exec.saved};
}

SandboxRequest SandboxRequestOf(const SandboxEntry& sandbox, const Container& container) {
  SandboxRequest request;
  request.id = sandbox.id;
  request.ns = container.group->ns;
  request.kind = KindFor(container);
  request.bundle = container.bundle;
  request.options_json = container.options_json;
  request.netns_path = container.netns_path;
  request.annotations = container.annotations;
  request.containerd_address = container.group->grpc_address;
  return request;
}

io::StdioPaths StdioPathsOf(const TaskProcess& process) {
  return {process.stdio.in, process.stdio.out, process.stdio.err, process.stdio.terminal};
}

io::StdioOptions StdioOptionsOf(const TaskProcess& process, const config::Config& config) {
  io::StdioOptions options;
  options.pipe_bytes = config.io.fifo_bytes;
  options.open_limit = config.timeouts.stdio_open;
  options.logger_stop = config.io.logger_stop;
  options.id = process.is_init() ? process.container.id.str() : process.id.str();
  options.ns = process.container.group->ns.str();
  options.logger_tag = "logger";
  // With a pid namespace of its own an init takes all that it has started along. A profile
  // may forbid the fifo for what its path or its label is.
  options.own_pipes =
      !process.is_init() || !process.container.private_pids || process.container.confined;
  options.heirs_limit = config.timeouts.stdio_drain;
  options.account = process.container.group->account;
  return options;
}

}  // namespace gantry::task
