// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/urpc/failure.h"

#include <array>
#include <utility>

namespace gantry::urpc {
namespace {

struct Meaning {
  std::string_view part;
  Cause cause;
  Code code;
};

/// The first that is part of the text counts.
constexpr std::array kMeanings = {
    Meaning{"error finding executable", Cause::kWorkload, Code::kInvalidArgument},
    Meaning{"failed to find initial working directory", Cause::kWorkload, Code::kInvalidArgument},
    Meaning{"failed to load", Cause::kWorkload, Code::kInvalidArgument},
    Meaning{"failed to create process", Cause::kWorkload, Code::kInvalidArgument},
    Meaning{"unknown method", Cause::kRefused, Code::kUnimplemented},
    Meaning{"already exists", Cause::kRefused, Code::kAlreadyExists},
    Meaning{"not started", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"not in started state", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"has stopped", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"checkpoint not supported", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"runsc version does not match", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"no TTY attached", Cause::kRefused, Code::kFailedPrecondition},
    Meaning{"trying to start a deleted container", Cause::kRefused, Code::kNotFound},
    Meaning{"no such process", Cause::kRefused, Code::kNotFound},
    Meaning{"not found", Cause::kRefused, Code::kNotFound},
    Meaning{"connection was refused", Cause::kRefused, Code::kUnavailable},
    Meaning{"no space left on device", Cause::kRefused, Code::kResourceExhausted},
    Meaning{"too many open files", Cause::kRefused, Code::kResourceExhausted},
    Meaning{"cannot allocate memory", Cause::kRefused, Code::kResourceExhausted},
    Meaning{"invalid argument", Cause::kRefused, Code::kInvalidArgument},
};

}  // namespace

Failure Refusal(std::string_view method, std::string text) {
  Failure failure{Cause::kRefused, Code::kInternal, std::string(method), std::move(text), 0};
  for (const Meaning& meaning : kMeanings) {
    if (failure.text.contains(meaning.part)) {
      failure.cause = meaning.cause;
      failure.code = meaning.code;
      break;
    }
  }
  return failure;
}

Error ToError(const Failure& failure) {
  // Of what has gone wrong inside a sentry comes Go's stack with it.
  const std::string text = failure.text.substr(0, failure.text.find(":\ngoroutine "));
  return {failure.code, failure.sys_errno, failure.method + ": " + text, {}};
}

}  // namespace gantry::urpc
