// SPDX-License-Identifier: Apache-2.0
//
// Methods whose messages are generated protobuf types. The templates hold only
// what depends on the types; parsing and printing is done once, on MessageLite.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/message_lite.h>

#include <gantry/error.h>

#include "core/rpc/method_table.h"

namespace gantry::rpc {

/// Errors: kInvalidArgument, naming the type.
Status ParseMessage(std::string_view bytes, google::protobuf::MessageLite& message);
/// Errors: kInternal, naming the type (a string field that is not UTF-8, above 2 GiB).
Result<std::string> SerializeMessage(const google::protobuf::MessageLite& message);

/// The context lives until the handler's task has ended.
template <class Req, class Resp>
using TypedHandler = std::function<async::Task<Result<Resp>>(const CallContext&, Req)>;

namespace internal {

template <class Req, class Resp>
async::Task<Result<std::string>> RunTyped(const TypedHandler<Req, Resp>* handler, Call call) {
  Req request;
  GANTRY_CO_CHECK_OK(ParseMessage(call.payload, request));
  std::string().swap(call.payload);
  Result<Resp> response = co_await (*handler)(call, std::move(request));
  if (!response) {
    co_return std::unexpected(std::move(response).error());
  }
  co_return SerializeMessage(*response);
}

}  // namespace internal

/// As `MethodTable::Add`. Req and Resp are named by the caller, the handler
/// may be any callable: `AddTyped<StateRequest, StateResponse>(table, kTask, "State", ...)`.
template <class Req, class Resp>
Status AddTyped(MethodTable& table, std::string service, std::string method,
                TypedHandler<Req, Resp> handler) {
  auto kept = std::make_shared<const TypedHandler<Req, Resp>>(std::move(handler));
  return table.Add(std::move(service), std::move(method), [kept](Call call) {
    return internal::RunTyped<Req, Resp>(kept.get(), std::move(call));
  });
}

}  // namespace gantry::rpc
