// SPDX-License-Identifier: Apache-2.0
//
// The standard streams of a process as descriptors for whoever runs it and reads and writes them
// himself (a sentry, a runtime of WebAssembly): he may set O_NONBLOCK, which holds for everybody
// who has the same open file. So he gets one of his own. Source: open(2), fcntl(2); runsc 2026-09,
// pkg/sentry/fsimpl/host/host.go.
#pragma once

#include <array>

#include <gantry/context.h>
#include <gantry/error.h>
#include <gantry/process.h>
#include <gantry/unique_fd.h>

namespace gantry {

struct Streams {
  bool terminal = false;
  /// In, out, err: where there is none, /dev/null. Of a terminal its replica, three times.
  std::array<UniqueFd, 3> ends;
};

/// Takes what the core has opened. `kind`: whether a terminal is to become somebody's
/// controlling one. Again, in the next engine too, until the process has started.
/// Errors: as `ProcessContext::TakeStdio` and `OpenConsole`. Blocks: as they do.
Result<Streams> TakeStreams(ProcessContext& process, ConsoleKind kind);

/// What the core opens for an init is to be taken when its container is made: taken like that,
/// and kept under `name` until the start, which may be in the next engine. A terminal is the
/// core's to keep.
Result<Streams> KeepStreams(SandboxContext& sandbox, ProcessContext& process,
                            const std::string& name);
/// What is kept. Errors: kNotFound: nothing is.
Result<Streams> KeptStreams(SandboxContext& sandbox, ProcessContext& process,
                            const std::string& name, bool terminal);
/// It has started, or never will.
void ForgetKept(SandboxContext& sandbox, const std::string& name, bool terminal);

}  // namespace gantry
