// SPDX-License-Identifier: Apache-2.0
//
// Who answers the system calls that a filter asks about: an agent of the node's, which listens at
// `linux.seccomp.listenerPath` and gets the listener together with whose it is.
// Source: OCI runtime-spec 1.2, config-linux.md, "The Container Process State"; runtime.md,
// "State".
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include <gantry/error.h>

namespace gantry::container {

struct SeccompAgent {
  /// Where it listens; empty: there is none.
  std::string path;
  /// `listenerMetadata`.
  std::string metadata;
  /// Of the container: what its `State` would say.
  std::string id;
  std::string status;
  /// Of its init, where the process is another one; 0: the process is its init.
  pid_t init = 0;
  std::string bundle;
  std::map<std::string, std::string> annotations;
};

/// The "container process state" of `pid`, whose filter has been loaded.
std::string ProcessStateText(const SeccompAgent& agent, pid_t pid);

/// Gives `listener`, which is borrowed, to the agent, over a connection of its own that ends with
/// it. Blocks: up to ten seconds. Errors: kNotFound, kUnavailable: nobody listens there;
/// kDeadlineExceeded: nobody takes it; the errno's, with the path.
Status TellAgent(const SeccompAgent& agent, pid_t pid, int listener);

}  // namespace gantry::container
