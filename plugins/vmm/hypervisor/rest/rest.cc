// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/rest/rest.h"

#include <algorithm>

#include <gantry/format.h>
#include <gantry/json.h>

namespace gantry::vmm {
namespace {

constexpr JsonLimits kAnswerLimits = {.bytes = kMaxHttpBody, .depth = 32, .values = 20'000};
constexpr int kFirstRefusal = 300;
constexpr size_t kMaxWords = 2000;

/// Source: cloud-hypervisor, vmm/src/api/openapi/cloud-hypervisor.yaml; firecracker,
/// src/firecracker/swagger/firecracker.yaml.
Code CodeOf(int status, Code bad_request) {
  constexpr int kBadRequest = 400;
  constexpr int kNotFound = 404;
  constexpr int kWrongState = 405;
  constexpr int kConflict = 409;
  constexpr int kTooManyRequests = 429;
  switch (status) {
    case kBadRequest:
      return bad_request;
    case kNotFound:
      return Code::kNotFound;
    case kWrongState:
      return Code::kFailedPrecondition;
    case kConflict:
      return Code::kAlreadyExists;
    case kTooManyRequests:
      return Code::kUnavailable;
    default:
      return Code::kInternal;
  }
}

/// One line of printable characters: it goes into an error.
std::string Plain(std::string words) {
  words.resize(std::min(words.size(), kMaxWords));
  std::ranges::replace_if(words, [](char c) { return c >= 0 && c < ' '; }, ' ');
  return words;
}

}  // namespace

Status Rest::Await(Deadline deadline, const HostProcess* process) {
  GANTRY_TRY(const auto held, lock_.Take("connect to " + dialect_.vmm, deadline));
  GANTRY_CHECK_OK(ControlSocket::Await(dialect_.vmm, path_, deadline, process));
  return {};
}

Result<HttpAnswer> Rest::Exchange(const HttpRequest& request, Deadline deadline) {
  GANTRY_TRY(const auto held, lock_.Take("wait for the socket", deadline));
  GANTRY_TRY(ControlSocket socket, ControlSocket::Open(dialect_.vmm, path_, deadline));
  return AskHttp(socket, request, deadline);
}

Result<Json> Rest::Read(const HttpAnswer& answer) const {
  Result<Json> body = Json();
  if (!answer.body.empty()) {
    body = ParseJson(answer.body, "answer", kAnswerLimits);
  }
  if (answer.status < kFirstRefusal) {
    if (!body) {
      return Fail(Code::kDataLoss, "its answer is not taken: {}", body.error().message);
    }
    return body;
  }
  const std::string words = body ? Plain(dialect_.words(*body)) : std::string();
  return Fail(CodeOf(answer.status, dialect_.bad_request), "it answered {}{}{}", answer.status,
              words.empty() ? "" : ": ", words);
}

Result<Json> Rest::Ask(std::string_view method, std::string_view target, const Json& body,
                       std::span<const int> fds, Deadline deadline) {
  const std::string text = body.is_null() ? std::string() : body.dump();
  const auto told = [&](Error error) {
    return std::unexpected(
        std::move(error).Within(Format("ask {} to '{} {}'", dialect_.vmm, method, target)));
  };
  Result<HttpAnswer> answer =
      Exchange({.method = method, .target = target, .body = text, .fds = fds}, deadline);
  if (!answer) {
    return told(std::move(answer).error());
  }
  Result<Json> read = Read(*answer);
  if (!read) {
    return told(std::move(read).error());
  }
  return read;
}

Result<Json> Rest::Get(std::string_view target, Deadline deadline) {
  return Ask("GET", target, Json(), {}, deadline);
}

Status Rest::Put(std::string_view target, const Json& body, Deadline deadline,
                 std::span<const int> fds) {
  GANTRY_CHECK_OK(Ask("PUT", target, body, fds, deadline));
  return {};
}

Status Rest::Patch(std::string_view target, const Json& body, Deadline deadline) {
  GANTRY_CHECK_OK(Ask("PATCH", target, body, {}, deadline));
  return {};
}

Status Rest::Delete(std::string_view target, Deadline deadline) {
  GANTRY_CHECK_OK(Ask("DELETE", target, Json(), {}, deadline));
  return {};
}

}  // namespace gantry::vmm
