// SPDX-License-Identifier: Apache-2.0
//
// The beginning of a control connection, on the host: whoever dials port 1025 is in the guest, and
// need not be the agent. The first of a boot is, since nothing else runs then; from then on who
// dials again has to know what the host's `Welcome` told it.
#pragma once

#include <optional>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/protocol/frames.h"
#include "plugins/vmm/protocol/greeting.h"

namespace gantry::vmm {

struct Greeted {
  UniqueFd socket;
  /// Its texts are printable and short.
  protocol::Hello hello;
  uint32_t version = 0;
  /// To be kept for the agent's next connection, to a next engine too.
  std::string session;
};

/// A connection that nobody has been recognised on yet. Thread: one.
class Newcomer {
 public:
  /// `socket`: does not block.
  explicit Newcomer(UniqueFd socket);

  /// Reads what has come of its hello. None: some of it is missing. `session`: of the agent that is
  /// known; empty: there was none yet. Errors: kPermissionDenied: it is not the agent;
  /// kFailedPrecondition: no version in common, see `ChooseVersion`, which the agent is told;
  /// others of one that says no hello. Then it is of no use. Blocks: never.
  Result<std::optional<Greeted>> Hear(const std::string& session);

  int fd() const { return socket_.get(); }

 private:
  Result<Greeted> Welcome(const std::string& hello, const std::string& session);

  UniqueFd socket_;
  protocol::FrameReader frames_;
};

/// Takes connections from `listener`, which does not block, until one of them is the agent's; for
/// who has no watch. Errors: kDeadlineExceeded: none came, and what did; kFailedPrecondition, as
/// `Newcomer::Hear`. Blocks: up to `deadline`. Thread: any.
Result<Greeted> GreetAgent(const UniqueFd& listener, const std::string& session, Deadline deadline);

}  // namespace gantry::vmm
