// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/durable_call.h"

#include <utility>

#include <gantry/fingerprint.h>
#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

using urpc::Cause;
using urpc::Connection;
using urpc::Outcome;

constexpr const char* kNoMethod = "gantry.HasAnythingBeenSent";

std::unexpected<urpc::Failure> Local(std::string_view method, Error error) {
  return std::unexpected(urpc::Failure{Cause::kLocal, error.code, std::string(method),
                                       std::move(error.message), error.sys_errno});
}

/// No other call is answered so: each sentry knows those that are made durably.
bool IsAnswerToTheQuestion(const Outcome<urpc::Answer>& answer) {
  return !answer && answer.error().cause == Cause::kRefused &&
         answer.error().text == "unknown method";
}

}  // namespace

Outcome<std::vector<Connection>> OpenDurably(SandboxContext& context, const std::string& socket,
                                             std::span<const std::string> names,
                                             Deadline deadline) {
  std::vector<Connection> connections;
  for (size_t i = 0; i < names.size(); ++i) {
    GANTRY_TRY(Connection one, Connection::Open(socket, deadline));
    connections.push_back(std::move(one));
  }
  std::vector<NamedFd> all;
  all.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    all.push_back({names[i], connections[i].fd()});
  }
  if (Status stored = context.StoreAll(all); !stored) {
    for (const std::string& name : names) {
      context.Drop(name);
    }
    return Local("Open", std::move(stored).error());
  }
  return connections;
}

Outcome<Connection> CallDurably(SandboxContext& context, const std::string& socket,
                                const std::string& name, const urpc::Request& request,
                                Deadline deadline) {
  GANTRY_TRY(std::vector<Connection> opened, OpenDurably(context, socket, {&name, 1}, deadline));
  const auto sent = opened.front().Send(request, deadline);
  if (!sent) {
    context.Drop(name);
    return std::unexpected(sent.error());
  }
  return std::move(opened.front());
}

Outcome<std::unique_ptr<Connection>> TakeUpCall(SandboxContext& context, const std::string& name,
                                                Deadline deadline) {
  auto stored = context.Take(name);
  if (!stored && stored.error().code == Code::kNotFound) {
    return nullptr;
  }
  if (!stored) {
    return Local(name, std::move(stored).error());
  }
  Connection connection(std::move(*stored));
  if (!connection.IsReadable()) {
    GANTRY_CHECK_OK(connection.Send({.method = kNoMethod}, deadline));
  }
  const auto answer = connection.Peek(kNoMethod, deadline);
  if (IsAnswerToTheQuestion(answer)) {
    context.Drop(name);
    return nullptr;
  }
  if (!answer && answer.error().cause != Cause::kRefused &&
      answer.error().cause != Cause::kWorkload) {
    return std::unexpected(answer.error());
  }
  return std::make_unique<Connection>(std::move(connection));
}

Result<Connection> TakeUpUnanswered(SandboxContext& context, const std::string& name,
                                    Deadline deadline) {
  GANTRY_TRY(UniqueFd stored, context.Take(name));
  Connection connection(std::move(stored));
  if (!connection.IsReadable()) {
    const auto asked = connection.Send({.method = kNoMethod}, deadline);
    if (!asked && asked.error().cause != Cause::kGone) {
      return std::unexpected(ToError(asked.error()));
    }
  }
  return connection;
}

std::string StoreName(std::string_view what, std::string_view container, std::string_view exec) {
  return Format("{}/{:016x}", what, Fingerprint(exec, Fingerprint(container)));
}

}  // namespace gantry::gvisor
