// SPDX-License-Identifier: Apache-2.0
//
// What backends and streams are told of a container or a process: the same whether it is made or
// taken up again, so each field is filled here and nowhere else. (Of a pod: core/pod/pod.h.)
// Thread: loop.
#pragma once

#include <string>

#include <gantry/container.h>
#include <gantry/sandbox.h>

#include "core/io/process_io.h"

namespace gantry::config {
struct Config;
}  // namespace gantry::config

namespace gantry::task {

struct Container;
struct SandboxEntry;
struct TaskProcess;

/// `spec_json`: its config.json, which nobody else keeps.
ContainerRequest ContainerRequestOf(const Container& container, std::string spec_json);
ExecRequest ExecRequestOf(const TaskProcess& exec);
/// Of a sandbox that is made for `container`, or taken up for it: of the same kind both times.
SandboxRequest SandboxRequestOf(const SandboxEntry& sandbox, const Container& container);

io::StdioPaths StdioPathsOf(const TaskProcess& process);
io::StdioOptions StdioOptionsOf(const TaskProcess& process, const config::Config& config);

}  // namespace gantry::task
