// SPDX-License-Identifier: Apache-2.0
//
// The seam at which exceptions out of plugins end, and results that are none. The
// interface has neither, but a plugin is someone else's code.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gantry/error.h>
#include <gantry/format.h>

namespace gantry::backend {

namespace internal {

constexpr size_t kMaxMessage = 4096;

/// An error that containerd can act on: with a code that is one, and a text.
inline Error Checked(std::string_view backend, Error error) {
  if (error.message.size() > kMaxMessage) {
    error.message.resize(kMaxMessage);
  }
  if (error.code <= Code::kOk || error.code > Code::kUnauthenticated) {
    error.message = Format("backend '{}' failed with the code {}, which is none: {}", backend,
                           static_cast<int>(error.code), error.message);
    error.code = Code::kInternal;
  } else if (error.message.empty()) {
    error.message = Format("backend '{}' failed and does not say why", backend);
  }
  return error;
}

}  // namespace internal

/// Calls `function`, which gives a `Result`. kInternal with the backend's name become
/// an exception, `backend '<name>' threw: <what>`, a null pointer, and an error with
/// a code that is none.
template <class Function>
std::invoke_result_t<Function> GuardedCall(std::string_view backend, Function&& function) {
  try {
    std::invoke_result_t<Function> result = std::forward<Function>(function)();
    if (!result) {
      return std::unexpected(internal::Checked(backend, std::move(result).error()));
    }
    if constexpr (requires { result->get() == nullptr; }) {
      if (*result == nullptr) {
        return Fail(Code::kInternal, "backend '{}' reported success and gave nothing", backend);
      }
    }
    return result;
  } catch (const std::exception& e) {
    return Fail(Code::kInternal, "backend '{}' threw: {}", backend, e.what());
  } catch (...) {
    return Fail(Code::kInternal, "backend '{}' threw something that is no std::exception", backend);
  }
}

}  // namespace gantry::backend
