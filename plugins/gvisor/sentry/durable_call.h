// SPDX-License-Identifier: Apache-2.0
//
// Calls that must be neither repeated nor lost when the engine is killed in the middle: their
// connection lies in the keeper's store before anything is sent, and the answer stays in the
// socket until it has been acted on. The next engine takes the connection up: if nothing had
// been sent, a question that no sentry understands gets its answer at once, and else the
// answer of the call comes first.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gantry/context.h>
#include <gantry/deadline.h>

#include "plugins/gvisor/urpc/connection.h"

namespace gantry::gvisor {

/// Connections on which nothing has been sent, one for each name, in the sandbox's store: for
/// what has to be asked together, in the time of one. Errors: kLocal: nothing stays stored; as
/// `urpc::Connection::Open`.
urpc::Outcome<std::vector<urpc::Connection>> OpenDurably(SandboxContext& context,
                                                         const std::string& socket,
                                                         std::span<const std::string> names,
                                                         Deadline deadline);

/// Sends the request; its answer is to be peeked at (`urpc::Connection::Peek`), and `name`
/// to be dropped from the store when what it says has been acted on. `name`: in the sandbox's
/// store. Errors: kLocal: nothing was sent, nothing stays stored; as `urpc::Connection::Send`.
urpc::Outcome<urpc::Connection> CallDurably(SandboxContext& context, const std::string& socket,
                                            const std::string& name, const urpc::Request& request,
                                            Deadline deadline);

/// A call that an engine before this one has sent: its answer has come, or will. Null: it had
/// not been sent, and `name` is in the store no more.
/// Errors: kGone: the sentry has ended; kDeadline; kLocal.
urpc::Outcome<std::unique_ptr<urpc::Connection>> TakeUpCall(SandboxContext& context,
                                                            const std::string& name,
                                                            Deadline deadline);

/// Such a call, without waiting for it: readable as soon as the sentry is done with it, also
/// where it had not been sent. It stays stored. Errors: kNotFound: none is.
Result<urpc::Connection> TakeUpUnanswered(SandboxContext& context, const std::string& name,
                                          Deadline deadline);

/// A name for the store, where ids would be too long: `start/0123456789abcdef`.
std::string StoreName(std::string_view what, std::string_view container,
                      std::string_view exec = {});

}  // namespace gantry::gvisor
