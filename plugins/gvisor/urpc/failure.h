// SPDX-License-Identifier: Apache-2.0
//
// Why a call to a sentry failed. The protocol has no codes, only Go's free text, so the text
// decides; it is kept whatever it is taken for.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <gantry/error.h>

namespace gantry::urpc {

enum class Cause {
  /// The sentry answered that it will not: the object is not there or not in that state, or it
  /// does not know the method.
  kRefused,
  /// The sentry did as it was told and the workload could not be run: no such program, no such
  /// working directory.
  kWorkload,
  /// Nobody is at the socket any more, or he left before he had answered. Whether the call took
  /// effect is not known.
  kGone,
  /// What came is no answer: no JSON, no object, too long, descriptors too many.
  kProtocol,
  /// No answer in time. The call may take effect yet.
  kDeadline,
  /// This process could not send it: no descriptors, no memory.
  kLocal,
};

struct Failure {
  Cause cause = Cause::kRefused;
  /// Of an answer: the class that containerd knows it under.
  Code code = Code::kInternal;
  /// "containerManager.Signal"
  std::string method;
  /// The sentry's words, or what happened.
  std::string text;
  int sys_errno = 0;
};

/// A value or a `Failure`.
template <class T>
class [[nodiscard]] Outcome : public std::expected<T, Failure> {
 public:
  using std::expected<T, Failure>::expected;
};

/// It may take effect yet.
template <class T>
bool IsLate(const Outcome<T>& answer) {
  return !answer && answer.error().cause == Cause::kDeadline;
}

/// What the sentry's word `text` means. Source: runsc 20240729 and 2026-09,
/// runsc/boot/controller.go, runsc/boot/loader.go, pkg/sentry/kernel, pkg/urpc/urpc.go.
Failure Refusal(std::string_view method, std::string text);

/// For who knows nothing of urpc: `<method>: <text>`, without a stack where the text has one.
Error ToError(const Failure& failure);

}  // namespace gantry::urpc
