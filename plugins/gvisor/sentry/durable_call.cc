// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/sentry/durable_call.h"

#include <array>
#include <ranges>
#include <vector>

#include <gantry/context.h>
#include <gantry/fingerprint.h>
#include <gantry/format.h>

namespace gantry::gvisor {
namespace {

using urpc::Cause;
using urpc::Connection;
using urpc::Outcome;

constexpr const char* kNoMethod = "gantry.HasAnythingBeenSent";

}  // namespace

DurableCall::~DurableCall() {
  if (state_ == State::kStored) {
    Settle();
  }
}

Outcome<DurableCall> DurableCall::Open(SandboxContext& context, const std::string& socket,
                                       std::string name, Deadline deadline) {
  GANTRY_TRY(Connection connection, Connection::Open(socket, deadline));
  return DurableCall(context, std::move(name), std::move(connection), State::kOpened);
}

Outcome<void> DurableCall::Store(std::initializer_list<DurableCall*> calls) {
  std::vector<NamedFd> all;
  for (DurableCall* const call : calls) {
    GANTRY_CHECK_OK(call->Check("stored", State::kOpened, State::kOpened));
    all.push_back({call->name_, call->connection_.fd()});
  }
  const Status stored = (*calls.begin())->context_->StoreAll(all);
  for (DurableCall* const call : std::views::reverse(calls)) {
    call->state_ = State::kStored;
    if (!stored) {
      call->Settle();
    }
  }
  const Error error = stored ? Error() : stored.error();
  return stored ? Outcome<void>()
                : std::unexpected(urpc::Failure{Cause::kLocal, error.code, "Open", error.message,
                                                error.sys_errno});
}

Outcome<DurableCall> DurableCall::Begin(SandboxContext& context, const std::string& socket,
                                        std::string name, const urpc::Request& request,
                                        Deadline deadline) {
  GANTRY_TRY(DurableCall call, Open(context, socket, std::move(name), deadline));
  GANTRY_CHECK_OK(Store({&call}));
  GANTRY_CHECK_OK(call.Send(request, deadline));
  return call;
}

Result<DurableCall> DurableCall::TakeUp(SandboxContext& context, std::string name) {
  GANTRY_TRY(UniqueFd stored, context.Take(name));
  return DurableCall(context, std::move(name), Connection(std::move(stored)), State::kTakenUp);
}

Outcome<void> DurableCall::Check(std::string_view what, State one, State other) const {
  if (state_ == one || state_ == other) {
    return {};
  }
  constexpr std::array kNames = {"only opened", "stored",   "taken up",
                                 "sent",        "answered", "settled"};
  return std::unexpected(urpc::Failure{
      Cause::kLocal, Code::kFailedPrecondition, name_,
      Format("one that is {} is not to be {}", kNames.at(static_cast<size_t>(state_)), what), 0});
}

Outcome<void> DurableCall::Send(const urpc::Request& request, Deadline deadline) {
  GANTRY_CHECK_OK(Check("sent", State::kStored, State::kTakenUp));
  GANTRY_CHECK_OK(connection_.Send(request, deadline));
  state_ = State::kSent;
  return {};
}

Outcome<urpc::Answer> DurableCall::Peek(std::string_view method, Deadline deadline) {
  GANTRY_CHECK_OK(Check("listened to", State::kSent, State::kAnswered));
  auto answer = connection_.Peek(method, deadline);
  if (answer || answer.error().cause == Cause::kRefused ||
      answer.error().cause == Cause::kWorkload) {
    state_ = State::kAnswered;
  }
  return answer;
}

Outcome<void> DurableCall::AskWhetherSent(Deadline deadline) {
  GANTRY_CHECK_OK(Check("asked about", State::kTakenUp, State::kTakenUp));
  return connection_.IsReadable() ? Outcome<void>()
                                  : connection_.Send({.method = kNoMethod}, deadline);
}

Outcome<bool> DurableCall::WasSent(Deadline deadline) {
  GANTRY_CHECK_OK(AskWhetherSent(deadline));
  state_ = State::kSent;
  const auto answer = Peek(kNoMethod, deadline);
  if (state_ != State::kAnswered) {
    state_ = State::kTakenUp;
    return std::unexpected(answer.error());
  }
  // No other call is answered so: each sentry knows those that are made durably.
  return answer || answer.error().text != "unknown method";
}

void DurableCall::Settle() {
  if (state_ != State::kOpened && state_ != State::kSettled) {
    context_->Drop(name_);
  }
  state_ = State::kSettled;
}

Connection DurableCall::Release() && {
  state_ = State::kSettled;
  return std::move(connection_);
}

std::string StoreName(std::string_view what, std::string_view container, std::string_view exec) {
  return Format("{}/{:016x}", what, Fingerprint(exec, Fingerprint(container)));
}

void CallNames::Drop(SandboxContext& context) const {
  // In this order: an engine that finds the second one alone takes it for started.
  context.Drop(wait);
  context.Drop(start);
}

}  // namespace gantry::gvisor
