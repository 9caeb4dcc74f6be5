// SPDX-License-Identifier: Apache-2.0
//
// How gantry and its backends say that something failed: a code that
// containerd acts on, the errno where there was one, and a text. Exceptions do
// not cross a function boundary; `Result<T>` does.
//
// Message: `<what was attempted> '<object>': <cause>`, lower case, no full stop.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <gantry/format.h>

namespace gantry {

/// The canonical status codes. ttrpc and gRPC carry these numbers as they are.
/// Source: grpc, doc/statuscodes.md.
enum class Code : int {
  kOk = 0,
  kCanceled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// `NOT_FOUND` for `kNotFound`, and so on; a number for what is none of them.
std::string_view CodeName(Code code);

/// A failure. Owns everything it shows, so it may outlive whoever made it.
struct Error {
  Code code = Code::kInternal;
  /// The errno that caused it, 0 where there was none.
  int sys_errno = 0;
  /// What containerd and its users read.
  std::string message;
  /// More for the log: a tool's output, for example. Never sent to containerd.
  std::string detail;

  /// This error seen from one level up: `<what>: <message>`, code and errno kept.
  Error Within(std::string_view what) &&;
};

/// A value or an `Error`. A class rather than an alias so that a dropped
/// result is a warning.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

using Status = Result<void>;

/// An error with a formatted message: `return Fail(Code::kNotFound, "no '{}'", id)`.
template <class... Args>
std::unexpected<Error> Fail(Code code, std::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Error{code, 0, Format(format, std::forward<Args>(args)...), std::string()});
}

/// The code for an errno whose meaning is known, `kInternal` for the others.
Code CodeOfErrno(int sys_errno);

/// `<what>: <name of the errno>`, with the errno's code.
Error ErrnoError(int sys_errno, std::string_view what);

/// As `Fail`, for a system call: the errno's name is put behind the message.
template <class... Args>
std::unexpected<Error> FailErrno(int sys_errno, std::format_string<Args...> format,
                                 Args&&... args) {
  return std::unexpected(ErrnoError(sys_errno, Format(format, std::forward<Args>(args)...)));
}

/// `ENOENT` for 2, and so on.
std::string ErrnoName(int sys_errno);

/// The one way to drop a result. `reason` tells the reader why that is right.
template <class T>
void IgnoreError(const Result<T>& result, [[maybe_unused]] const char* reason) {
  static_cast<void>(result);
}

}  // namespace gantry

#define GANTRY_CONCAT_INNER(a, b) a##b
#define GANTRY_CONCAT(a, b) GANTRY_CONCAT_INNER(a, b)
#define GANTRY_TRY_INNER(tmp, decl, expr, ret)       \
  auto tmp = (expr);                                 \
  if (!tmp) {                                        \
    ret ::std::unexpected(::std::move(tmp).error()); \
  }                                                  \
  decl = ::std::move(*tmp)
#define GANTRY_CHECK_INNER(tmp, expr, ret)             \
  do {                                                 \
    if (auto tmp = (expr); !tmp) {                     \
      ret ::std::unexpected(::std::move(tmp).error()); \
    }                                                  \
  } while (false)
// Names are counted, so that a lambda inside an expression may use the macros too.
#define GANTRY_TEMPORARY GANTRY_CONCAT(gantry_result_, __COUNTER__)

/// `GANTRY_TRY(auto fd, OpenPidfd(pid));`: the value, or return the error.
#define GANTRY_TRY(decl, expr) GANTRY_TRY_INNER(GANTRY_TEMPORARY, decl, expr, return)
/// The same in a coroutine; `expr` may contain `co_await`.
#define GANTRY_CO_TRY(decl, expr) GANTRY_TRY_INNER(GANTRY_TEMPORARY, decl, expr, co_return)
/// Return the error of a result whose value is not wanted.
#define GANTRY_CHECK_OK(expr) GANTRY_CHECK_INNER(GANTRY_TEMPORARY, expr, return)
#define GANTRY_CO_CHECK_OK(expr) GANTRY_CHECK_INNER(GANTRY_TEMPORARY, expr, co_return)
